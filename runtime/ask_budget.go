package runtime

import (
	"context"
	"sync"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
)

// questions counts what a start of a run has asked people.
type questions struct {
	mu  sync.Mutex // guards sum
	sum agent.Asked
}

// record is the part of a record about questions; nil: nothing could be asked.
func (q *questions) record(spec agent.Spec, network *agent.NetworkUse) *agent.Asked {
	if len(spec.Kernel.Asks) == 0 {
		return nil
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	sum := q.sum
	if network != nil {
		sum.ByRule = max(0, network.Connections+network.Refused-sum.Held)
	}
	return &sum
}

// held counts a connection that has waited for an answer.
func (q *questions) held() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.sum.Held++
}

func (q *questions) answered(state api.ApprovalState) {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch state {
	case api.ApprovalAllowed:
		q.sum.Allowed++
	case api.ApprovalDenied:
		q.sum.Denied++
	case api.ApprovalExpired:
		q.sum.Expired++
	}
}

// question asks people something about the run, and counts it if it had to wait for them.
func (s *share) question(ctx context.Context, p api.ApprovalAskParams) (api.Approval, error) {
	p.Run = s.run
	return s.put(ctx, func(asked func(api.Approval)) (api.Approval, error) { return s.kernel.Ask(ctx, p, asked) })
}

// put shows a question where the run's questions are shown, counts it, and returns the answer.
func (s *share) put(ctx context.Context, ask func(asked func(api.Approval)) (api.Approval, error)) (api.Approval, error) {
	waited := false
	answer, err := ask(func(a api.Approval) {
		waited = true
		s.questions.mu.Lock()
		s.questions.sum.Questions++
		s.questions.mu.Unlock()
		if s.asked != nil {
			s.asked(ctx, a)
		}
		s.callouts.asked(a, s.kernel.Answer)
	})
	if waited {
		s.questions.answered(answer.State)
		if answer.Kind == api.ApproveNet {
			s.questions.held()
		}
	}
	return answer, err
}

// showCalls shows the questions about the agent's calls that are new.
func (s *share) showCalls(asking []string) {
	known := map[string]bool{}
	for _, id := range asking {
		known[id] = true
		if s.shown[id] {
			continue
		}
		go func() {
			ctx, cancel := context.WithCancel(s.ctx)
			defer cancel()
			_, _ = s.put(ctx, func(asked func(api.Approval)) (api.Approval, error) { return s.kernel.Asked(ctx, id, asked) }) // it is answered elsewhere
		}()
	}
	s.shown = known
}

// moreAsked is the question for more of the budget that has the run pause.
type moreAsked struct {
	about  api.Budget // what it is about, without what is used; empty: there is none
	cancel context.CancelFunc
}

const (
	askAgain    = time.Second     // after a refusal of the kernel's, until people are asked again
	answerComes = 5 * time.Second // after the standing that a yes has changed, for the answer itself
)

// askMore has people asked while a budget has the run pause; nil: none does. The kernel ends the question by itself when there
// is more.
func (s *share) askMore(spent *api.Budget) {
	about := api.Budget{}
	if spent != nil {
		about = api.Budget{Account: spent.Account, Dimension: spent.Dimension, Since: spent.Since, Reserved: *spent.Granted}
	}
	if about == s.more.about {
		return
	}
	if s.more.cancel != nil {
		s.more.cancel()
	}
	s.more = moreAsked{about: about}
	if spent != nil {
		ctx, cancel := context.WithCancel(s.ctx)
		s.more.cancel = cancel
		go s.askUntil(ctx)
	}
}

// askUntil asks until people have said no, or no budget has the run pause any more. A question that is gone is asked again,
// unless the kernel says that it stands: its run may have been another, which has ended. The end of ctx may come before the
// answer that is its reason, which is counted too.
func (s *share) askUntil(ctx context.Context) {
	call, withdraw := context.WithCancel(s.ctx)
	defer withdraw()
	context.AfterFunc(ctx, func() { time.AfterFunc(answerComes, withdraw) })
	for gone := ""; ctx.Err() == nil; {
		answer, err := s.question(call, api.ApprovalAskParams{Kind: api.ApproveBudget})
		switch {
		case err != nil && api.ErrorOf(err).Code == api.CodeConflict: // there is more
			return
		case err != nil:
			select {
			case <-time.After(askAgain):
			case <-ctx.Done():
			}
		case answer.State == api.ApprovalDenied || answer.State == api.ApprovalExpired || answer.ID == gone:
			return
		}
		gone = answer.ID
	}
}
