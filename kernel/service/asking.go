package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/store"
)

// Asking is what people are asked about a call. They see all of it, and their answer holds for exactly that.
type Asking struct {
	Kind    string               // one of agent.Asks; empty: the method asks always (Stages.Approve)
	What    string               // what would be done, on one line
	Shown   []string             // its parts, in full, a line each
	Says    string               // the agent's own words about it
	Cost    string               // what it would cost; empty: nothing
	Also    string               // what else a yes would allow; empty: nothing
	Rule    string               // the rule that would have allowed it
	Changes *api.ApprovalChanges // those that would be written back; nil: none
	// Bound is the digest of what the call names and does not have in its parameters, such as a manifest. The call
	// that is carried out has it (Call.Bound), and may do nothing else.
	Bound string
}

// Asked is a method that people are asked about where no grant covers what an agent's call names, if the run's spec
// says so: ask is one of agent.Asks. A method without Stages.Covers has no grants: people decide about each call. A call that would be refused for another reason is refused without a question:
// first it is done in a transaction that is taken back. question says what is asked, with what was prepared. The
// call that people have allowed needs no grant. It is prepared anew, and passes all other checks again.
func Asked[P, W any](ask string, m Method, question func(*Call, P, W) (Asking, error)) Method {
	m.ask, m.asks = ask, true
	m.question = func(c *Call, params any) (Asking, error) {
		work, _ := c.prepared.(W)
		asking, err := question(c, params.(P), work)
		asking.Kind = ask
		return asking, err
	}
	return m
}

// asksAbout reports whether people are asked about calls of a run's agent that no grant covers.
func (m Method) asksAbout(run agent.Run) bool {
	return m.ask != "" && run.Spec.Kernel.People(m.ask) > 0
}

// Uncovered reports whether no grant covers the call, and people are asked about it, or were.
func (c *Call) Uncovered() bool { return c.uncovered || c.approved }

// Bound is Asking.Bound of a call that people have allowed; empty: they were not asked.
func (c *Call) Bound() string { return c.bound }

// errTried ends the transaction of a call that would be done if people allow it. Nothing of it stays.
var errTried = errors.New("it would be done")

// would does a call, to see whether it is refused. The transaction is taken back.
func (w *waiter) would() error {
	_, out, err := w.method.do(w.call, w.params)
	return cmp.Or(err, out.Refusal)
}

// refusedByPeople is the answer to a call that people did not allow.
func refusedByPeople(why string) error {
	text := "people refused it"
	if why != "" {
		text += ": " + why
	}
	return api.Failure(api.CodeDenied, "", "%s", text).By(StageApproval, "")
}

// slow reports whether the call of a question works before its transaction, which may take long.
func slow(e *Engine, name Question) (is bool) {
	_ = e.Read(func(tx *store.KernelTx) error { // what cannot be read is not done either
		q, err := Questions.Get(tx, questionKey(name.Run, name.ID))
		is = err == nil && q != nil && e.methods[q.Method].prepare != nil
		return err
	})
	return is
}

// readied does the work of an allowed call that comes before its transaction. It returns none where there is nothing
// to do. drop takes it back.
func readied(e *Engine, run agent.Run, name Question, refusal *api.Error) (work any, drop func(), err error) {
	drop = func() {}
	var w *waiter
	if refusal == nil {
		err = e.Read(func(tx *store.KernelTx) error {
			q, err := Questions.Get(tx, questionKey(name.Run, name.ID))
			if err != nil || q == nil || e.methods[q.Method].prepare == nil {
				return err
			}
			if w, err = stored(e, run, *q); err != nil {
				return err
			}
			w.call.Tx, w.call.Now = tx, e.now()
			answer, _, err := e.config.Approvals.Decided(w.call)
			if err != nil || answer != Approved {
				w = nil
				return err
			}
			return e.pass(w.call, stages[:2])
		})
	}
	if err != nil || w == nil {
		return nil, drop, err
	}
	w.call.Tx = nil
	if work, err = w.method.prepare(w.call, w.params); err != nil {
		return nil, drop, err
	}
	return work, func() { w.method.drop(work) }, nil
}

// Resume does the calls of all runs that people have answered, and that could not be done then.
func (e *Engine) Resume() (err error) {
	for _, run := range e.Attached() {
		err = cmp.Or(err, e.resume(run.Spec.ID))
	}
	return err
}

// Rest ends the calls that work because people have answered. They are done when their runs' supervisors come back.
func (e *Engine) Rest() { e.answers.close() }

// carriers carry out calls that people have answered, each by one at a time.
type carriers struct {
	context context.Context // ends with close
	end     context.CancelFunc
	working sync.WaitGroup

	mu     sync.Mutex        // guards the following
	open   map[Question]bool // those that are carried out; true: look again behind that
	closed bool
}

func (a *carriers) start() {
	a.open = map[Question]bool{}
	a.context, a.end = context.WithCancel(context.Background())
}

// carry does what a question's answer allows, beside the caller where that is slow. While it is done it is not begun again.
func (a *carriers) carry(q Question, slow bool, do func() error) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, busy := a.open[q]; busy || a.closed {
		if busy {
			a.open[q] = true
		}
		return nil
	}
	a.open[q] = false
	if slow {
		a.working.Go(func() { _ = a.all(q, contained(do)) }) // Resume tries again
		return nil
	}
	a.mu.Unlock()
	defer a.mu.Lock()
	return a.all(q, do)
}

// contained is do with its panic as an error: no caller's goroutine is left to take one.
func contained(do func() error) func() error {
	return func() (err error) {
		defer func() {
			if fault := recover(); fault != nil {
				err = fmt.Errorf("it failed: %v", fault)
			}
		}()
		return do()
	}
}

// all does it until nothing has asked for it meanwhile.
func (a *carriers) all(q Question, do func() error) (err error) {
	for again := true; again; {
		err = do()
		a.mu.Lock()
		if again = a.open[q]; again {
			a.open[q] = false
		} else {
			delete(a.open, q)
		}
		a.mu.Unlock()
	}
	return err
}

func (a *carriers) close() {
	a.mu.Lock()
	a.closed = true
	a.mu.Unlock()
	a.end()
	a.working.Wait()
}
