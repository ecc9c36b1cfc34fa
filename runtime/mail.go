package runtime

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"sync"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/agents"
)

// mailStreams join an agent's standard streams to mail: the run itself calls mail.send for each line, and
// mail.receive and mail.ack for its input, through all stages of an agent's call. nil has no streams.
type mailStreams struct {
	call    func(ctx context.Context, method string, params any) (json.RawMessage, error)
	changes func() <-chan struct{}       // closed when what the run may do or spend has changed
	failed  func(flag string, err error) // may be nil
	faulty  time.Duration                // mailFaulty, but for tests
	out     *mailOut                     // nil: stdout is not joined
	in      *mailIn                      // nil: stdin is not joined

	mu       sync.Mutex // guards the following
	use      agent.StreamUse
	patience *time.Timer // ends the output's context; nil: nothing bounds its waits
	waiting  time.Time   // when the attempt to send a line began; zero: none is under way
}

func newMailStreams(s *share, spec agent.Spec, failed func(string, error)) *mailStreams {
	m := &mailStreams{failed: failed, call: s.callOwn, changes: s.changes, faulty: mailFaulty}
	if to, err := agent.ParseMailStream("", spec.Kernel.StdoutTo); err == nil {
		m.out = &mailOut{streams: m, to: to, key: string(agent.NewID())}
		m.out.ctx, m.out.cancel = context.WithCancel(s.ctx)
	}
	if from, err := agent.ParseMailStream("", spec.Kernel.StdinFrom); err == nil {
		m.in = &mailIn{streams: m, from: from, ctx: s.ctx, begun: make(chan struct{}), first: spec.Detached}
	}
	return m
}

// callOwn is a call of the run's own, in which its agent has no part.
func (s *share) callOwn(ctx context.Context, method string, params any) (json.RawMessage, error) {
	text, err := json.Marshal(params)
	if err != nil {
		return nil, err
	}
	return s.kernel.Call(ctx, s.run, method, text)
}

// joinMail refuses a start whose streams could not be joined to mail, and registers the name of its input.
func (s *share) joinMail(spec agent.Spec) error {
	if to, err := agent.ParseMailStream("", spec.Kernel.StdoutTo); err == nil {
		what := "send:" + to.Name
		text, err := s.callOwn(s.ctx, agents.GrantCheck.Name, api.GrantCheckParams{What: what})
		var check api.GrantCheckResult
		if err == nil {
			err = json.Unmarshal(text, &check)
		}
		if err != nil {
			return agent.Failed("--stdout-to", err)
		}
		if !check.Allowed {
			return &agent.Error{Kind: agent.KindInvalid, Step: "--stdout-to", Message: "the run may not send to " + to.Name + ": " + check.Reason, Hint: "add --grant " + what}
		}
	}
	name := spec.ReceivesAs()
	if name == "" {
		return nil
	}
	if _, err := s.callOwn(s.ctx, agents.NameRegister.Name, api.NameRegisterParams{Name: name}); err != nil {
		refusal := api.ErrorOf(err)
		return &agent.Error{Kind: agent.KindOf(err), Step: "--stdin-from", Message: "the run cannot register " + name + ": " + refusal.Message, Hint: cmp.Or(refusal.Data.Hint, "add --grant name:"+name)}
	}
	return nil
}

const (
	mailAgain     = 50 * time.Millisecond // the pause before the second attempt; doubled before each one after
	mailAwayMost  = time.Second           // the longest one while cloved is away
	mailAgainMost = time.Minute           // and after a refusal, which is in the audit log
	// mailFull is how long one call waits for place in a mailbox. It is asked again.
	mailFull = time.Minute
	// mailFaulty bounds the time for which a fault of cloved's, or its full disk, is no end of a stream.
	mailFaulty = time.Minute
)

// untilNews is a pause that ends at once when the run's standing has changed, but not before mailAwayMost.
func untilNews(ctx context.Context, pause time.Duration, news <-chan struct{}) {
	after := func(d time.Duration, or <-chan struct{}) {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-or:
		case <-ctx.Done():
		}
	}
	after(min(pause, mailAwayMost), nil)
	after(max(0, pause-mailAwayMost), news)
}

// until calls until it is answered, refused for good, or ctx ends. begins is called before each attempt.
func (m *mailStreams) until(ctx context.Context, method string, params any, begins func()) (json.RawMessage, error) {
	var faulty time.Time // since when each answer is a fault; zero: it is not
	for pause := mailAgain; ; pause *= 2 {
		news, began := m.changes(), time.Now()
		begins()
		text, err := m.call(ctx, method, params)
		if err == nil || ctx.Err() != nil {
			return text, err
		}
		if time.Since(began) >= mailAgainMost/2 { // it has waited in cloved
			pause = mailAgain
		}
		var refusal *api.Error
		fault := false
		switch errors.As(err, &refusal); {
		case refusal == nil, refusal.Code == api.CodeDraining, refusal.Code == api.CodeBusy && refusal.Data.Rule == "":
			pause = min(pause, mailAwayMost)
		case refusal.Code == api.CodeBusy, refusal.Code == api.CodeBudget:
			pause = min(pause, mailAgainMost)
		case refusal.Code == api.CodeInternal, refusal.Code == api.CodeStorage:
			pause, fault = min(pause, mailAwayMost), true
		default:
			return text, err
		}
		switch {
		case !fault:
			faulty = time.Time{}
		case faulty.IsZero():
			faulty = began
		case time.Since(faulty) >= m.faulty:
			return text, err
		}
		untilNews(ctx, pause, news)
		if ctx.Err() != nil {
			return nil, err
		}
	}
}

func (m *mailStreams) count(change func(*agent.StreamUse)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	change(&m.use)
}

// end notes for the record why nothing more passes.
func (m *mailStreams) end(flag string, err error) {
	m.count(func(u *agent.StreamUse) { u.Error = strings.TrimPrefix(u.Error+"; "+flag+": "+err.Error(), "; ") })
	m.say(flag, err)
}

func (m *mailStreams) say(flag string, err error) {
	if m.failed != nil {
		m.failed(flag, err)
	}
}

// output is where standard output goes beside its reader; nil: nowhere.
func (m *mailStreams) output() *mailOut {
	if m == nil {
		return nil
	}
	return m.out
}

// feed writes the input to the agent. own copies the input that is not mail's.
func (m *mailStreams) feed(to io.Writer, own func()) {
	if m == nil || m.in == nil {
		own()
		return
	}
	if m.in.first {
		own() // a job's input comes before all mail
	}
	m.in.feed(to)
}

// begin lets the input come: the agent executes, so that what is acknowledged can be read.
func (m *mailStreams) begin() {
	if m != nil && m.in != nil {
		close(m.in.begun)
	}
}

// How long each line that the agent wrote before its end may wait for the mailbox: of one that ended by itself,
// and, together, of one that clove ended.
const (
	mailPatience     = time.Minute
	mailEndedByClove = time.Second
)

// hurry bounds the wait for a mailbox, once the agent has ended.
func (m *mailStreams) hurry(byItself bool) {
	if m == nil || m.out == nil {
		return
	}
	if !byItself {
		time.AfterFunc(mailEndedByClove, m.out.cancel)
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.patience = time.AfterFunc(mailPatience, m.out.cancel)
}

// used is for the record. It may be called while a line still waits.
func (m *mailStreams) used() *agent.StreamUse {
	if m == nil {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	use := m.use
	if !m.waiting.IsZero() {
		use.WaitedMS += time.Since(m.waiting).Milliseconds()
	}
	return &use
}
