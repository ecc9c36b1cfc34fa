package runtime

import (
	"context"
	"errors"
	"testing"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
)

// oneQuestion is a Kernel of one question about a budget, which waits until the test sends its answer.
type oneQuestion struct {
	Kernel // none: no other method is called
	waits  chan struct{}
	answer chan api.ApprovalState
}

func (a oneQuestion) Ask(ctx context.Context, _ api.ApprovalAskParams, asked func(api.Approval)) (api.Approval, error) {
	asked(api.Approval{ID: "1", Kind: api.ApproveBudget})
	a.waits <- struct{}{}
	select {
	case state := <-a.answer:
		return api.Approval{ID: "1", Kind: api.ApproveBudget, State: state}, nil
	case <-ctx.Done():
		return api.Approval{}, api.ErrorOf(errors.New("the client has gone"))
	}
}

// A yes lets the run go on before its answer is read: the standing that says so may come first. The answer is counted. A
// question that the kernel does not end is taken back a while later (the control of the first).
func TestAnAnswerBehindItsStandingIsCounted(t *testing.T) {
	t.Parallel()
	for name, answered := range map[string]bool{"answered": true, "not answered": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			granted := int64(10)
			k := oneQuestion{waits: make(chan struct{}), answer: make(chan api.ApprovalState)}
			spec := agent.Spec{ID: "run", Kernel: agent.Kernel{Asks: []string{agent.AskBudget}}}
			s := &share{kernel: k, ctx: t.Context(), callouts: newCallouts(spec, IO{}, nil, nil)}
			s.askMore(&api.Budget{Dimension: "reviews", Granted: &granted})
			<-k.waits
			s.askMore(nil)
			if answered {
				select {
				case k.answer <- api.ApprovalAllowed:
				case <-time.After(answerComes):
					t.Fatal("it does not wait for its answer")
				}
			}
			want := agent.Asked{Questions: 1}
			if answered {
				want.Allowed = 1
			}
			end := time.Now().Add(10 * time.Second)
			for got := s.questions.record(spec, nil); *got != want; got = s.questions.record(spec, nil) {
				if time.Now().After(end) {
					t.Fatalf("%+v, not %+v", got, want)
				}
				time.Sleep(time.Millisecond)
			}
			if !answered {
				time.Sleep(answerComes + time.Second)
				select {
				case k.answer <- api.ApprovalAllowed:
					t.Error("it waits still")
				default:
				}
			}
		})
	}
}
