package service

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"time"

	"clove.run/clove/api"
	"clove.run/clove/audit"
	"clove.run/clove/store"
)

// ErrNotYet is what a waiting method returns where there is nothing yet.
var ErrNotYet = errors.New("not yet")

// errAsked ends the transaction of a call that waits for people from now on. It is durable.
var errAsked = errors.New("people are asked")

// Reply gets the answer to a call, once. The error is an *api.Error, or becomes one (api.ErrorOf).
type Reply func(result json.RawMessage, err error)

// Call takes a call through the stages, and returns its answer.
func (e *Engine) Call(ctx context.Context, c Caller, r Request) (json.RawMessage, error) {
	type answer struct {
		result json.RawMessage
		err    error
	}
	answered := make(chan answer, 1)
	e.Begin(ctx, c, r, func(result json.RawMessage, err error) { answered <- answer{result, err} })
	a := <-answered
	return a.result, a.err
}

// Begin takes a call through the stages. It returns when the call is answered, or when it waits:
// then it has no goroutine, and ctx ends it. It may call reply itself.
func (e *Engine) Begin(ctx context.Context, c Caller, r Request, reply Reply) {
	w := &waiter{engine: e, call: e.newCall(ctx, c, r), run: c.Run.Spec.ID, began: time.Now(), reply: reply}
	w.call.activity.begins(e.methods[r.Method].idles)
	if err := w.known(r); err != nil {
		w.conclude(nil, err)
		return
	}
	w.begin()
}

// known is the stage known. It takes the caller's turn, but for methods without a transaction, and
// keeps it unless the call ends here.
func (w *waiter) known(r Request) (err error) {
	e, c := w.engine, w.call
	if mode := e.methods[r.Method].mode; mode != acts && mode != streams {
		e.turns.enter(c.queue())
		w.turn = true
	}
	goesOn := false // not after a panic either: a turn that is kept is lost for all callers
	defer func() {
		if !goesOn {
			w.leaveTurn()
		}
	}()
	if w.method, w.params, err = e.find(c.Caller, r); err == nil {
		c.asks = w.method.asksAbout(c.Run)
		c.declared, err = w.method.declare(w.params)
		c.peopleOnly = w.method.ask != "" && len(c.declared.Covers) == 0
	}
	if err == nil && w.method.topic != nil {
		w.topic = w.method.topic(c, w.params)
		err = w.within()
	}
	goesOn = err == nil
	return err
}

// leaveTurn gives the turn of the stage known to the next caller.
func (w *waiter) leaveTurn() {
	if w.turn {
		w.turn = false
		w.engine.turns.leave()
	}
}

// conclude counts and records a call that is decided, and replies.
func (w *waiter) conclude(result json.RawMessage, err error) {
	e, c := w.engine, w.call
	if e.config.Called != nil && w.method.mode != streams {
		e.config.Called(c.Caller, c.Method, err, time.Since(w.began))
	}
	switch {
	case err != nil && !c.out.Recorded:
		e.refused(c, err)
	case err == nil && c.out.Verdict != "":
		e.checked(c)
	}
	c.activity.concludes(w.rested, w.rested && foundNothing(err))
	w.reply(result, err)
}

// pass takes a call through its stages.
func (w *waiter) pass() (json.RawMessage, error) {
	e := w.engine
	switch w.method.mode {
	case acts:
		return e.act(w)
	case streams:
		return e.stream(w)
	case writes:
		if w.method.there != nil && w.topic != "" {
			w.enterTurn()
			if first, err := e.there(w); err != nil || first != nil {
				w.leaveTurn()
				return first, err
			}
		}
		w.leaveTurn() // it waits for the disk
		return e.writeWith(w)
	}
	w.enterTurn()
	defer w.leaveTurn()
	return e.read(w)
}

// enterTurn takes the caller's turn for a call that has waited, and has none.
func (w *waiter) enterTurn() {
	if !w.turn {
		w.engine.turns.enter(w.call.queue())
		w.turn = true
	}
}

// there looks whether a call can change what it waits to change. first is the answer that an earlier call with
// the key got.
func (e *Engine) there(w *waiter) (first json.RawMessage, err error) {
	c := w.call
	if c.key, err = keyOf(w.params); err != nil {
		return nil, err
	}
	readErr := e.Read(func(tx *store.KernelTx) error {
		c.again(tx, e.now())
		if first, err = c.repeated(); err != nil || first != nil {
			return err
		}
		if err = e.pass(c, stages[:2]); err == nil {
			err = w.method.there(c, w.params)
		}
		return err
	})
	return first, cmp.Or(err, readErr)
}

// act carries out a method without a transaction. Its entry goes into the reserve of the log: the
// end of agents must not wait for a disk that agents have filled.
func (e *Engine) act(w *waiter) (json.RawMessage, error) {
	result, out, err := w.method.do(w.call, w.params)
	w.call.out = out
	entry := w.call.entry(audit.VerdictAllow)
	if out.Entry != nil {
		entry = *out.Entry
		entry.Correlation, w.call.out.Recorded = w.call.ID, true
	} else if err != nil {
		return nil, err
	}
	if _, lerr := e.config.Log.AppendEnd(entry); err == nil {
		err = cmp.Or(lerr, e.settled(w.call))
	}
	if err != nil {
		return nil, err
	}
	return json.Marshal(result)
}

// stream does what takes as long as its caller stays. Only its refusal is recorded. With a key it is done once:
// a repetition is refused, because the answer of the first call is not kept.
func (e *Engine) stream(w *waiter) (_ json.RawMessage, err error) {
	if w.call.key, err = keyOf(w.params); err != nil {
		return nil, err
	}
	if w.call.key != "" {
		if err := begun(e, w.call); err != nil {
			return nil, err
		}
	}
	result, out, err := w.method.do(w.call, w.params)
	if w.call.out = out; err != nil {
		return nil, err
	}
	return json.Marshal(result)
}

// read serves a method that changes nothing.
func (e *Engine) read(w *waiter) (result json.RawMessage, err error) {
	var answer any
	readErr := e.Read(func(tx *store.KernelTx) error {
		w.call.again(tx, e.now())
		if err = e.pass(w.call, stages[:2]); err != nil { // what only reads costs nothing
			return err
		}
		var out Outcome
		answer, out, err = w.method.do(w.call, w.params)
		w.call.out.Add(out)
		return err
	})
	err = cmp.Or(err, readErr)
	if err == nil && w.method.then != nil {
		w.call.Tx = nil
		w.leaveTurn() // it may wait for the disk
		answer, err = w.method.then(w.call, w.params, answer)
	}
	if err != nil {
		return nil, err
	}
	return json.Marshal(answer)
}

// writeWith is write after the work of the method that comes before it.
func (e *Engine) writeWith(w *waiter) (json.RawMessage, error) {
	first, undone, err := e.prepared(w)
	if err != nil || first != nil {
		return first, err
	}
	defer e.place(w.call.Caller)()
	result, err := e.write(w)
	if err != nil || w.repeats {
		undone()
	}
	return result, err
}

// write serves a method that changes something: the change, its audit entry and the answer that a
// repetition gets are one transaction.
func (e *Engine) write(w *waiter) (result json.RawMessage, err error) {
	c := w.call
	if c.key, err = keyOf(w.params); err != nil {
		return nil, err
	}
	if err := e.Room(); err != nil {
		return nil, err
	}
	asked, first, tried := false, true, false
	err = e.update(c.Method, func(tx *store.KernelTx) (err error) {
		c.again(tx, e.now())
		asked, first, tried = false, true, false
		if result, err = c.repeated(); err != nil || result != nil {
			first = false
			return err
		}
		if asked, err = e.open(w); err != nil || asked {
			first = false
			return err
		}
		if err := e.pass(c, stages); err != nil {
			return err
		}
		if c.uncovered && !w.tried {
			if err = w.would(); err == nil {
				tried, err = true, errTried
			}
			return err
		}
		if asked, err = e.ask(w); err != nil || asked {
			return err
		}
		result, err = e.do(w)
		return err
	})
	switch {
	case tried:
		w.tried = true
		return e.write(w)
	case err != nil:
		return nil, err
	case asked && !first:
		return nil, errAsked
	case asked:
		return nil, cmp.Or(e.settled(c), errAsked)
	case !first:
		c.out, w.repeats = Outcome{}, true
		return result, nil
	}
	return result, e.settled(c)
}

// do does a call that has passed the stages, and concludes it. Where it is refused although
// something has changed, it is not kept.
func (e *Engine) do(w *waiter) (json.RawMessage, error) {
	c := w.call
	answer, err := w.method.perform(e, c, w.params)
	if err != nil || c.out.Refusal != nil {
		return nil, err
	}
	result, err := json.Marshal(answer)
	if err != nil {
		return nil, err
	}
	if err := c.keep(kept{Digest: c.digest(), Result: result}); err != nil {
		return nil, err
	}
	return result, cmp.Or(store.AuditQueue.DeleteUpTo(c.Tx, e.moved.Load()), Record(c.Tx, c.entry(audit.VerdictAllow)))
}

// perform does a call that has passed the stages, and settles it unless it is refused. A stage that refuses and
// notes that it did has refused it already.
func (m Method) perform(e *Engine, c *Call, params any) (answer any, err error) {
	if c.out.Refusal != nil {
		return nil, nil
	}
	answer, out, err := m.do(c, params)
	out.Add(c.out) // what the method decided comes first
	c.out = out
	if err != nil || c.out.Refusal != nil {
		return nil, err
	}
	return answer, e.finish(c)
}

// decidedAtOnce bounds the changes of one agent that are decided at once. Its others wait for
// these: a commit has room for all, and takes the longer the more calls share it, so an agent
// with a hundred in flight would make those of all others wait. With fewer, one agent's calls
// would share too few commits (TestAFloodCostsOthersItsProcessorTimeOnly has the figures).
const decidedAtOnce = 16

// place waits for a place among the changes that are decided, and returns how to leave it.
func (e *Engine) place(c Caller) (leave func()) {
	a := e.attachmentOf(c.Run.Spec.ID)
	if a == nil || !c.Agent {
		return func() {}
	}
	a.places <- struct{}{}
	return func() { <-a.places }
}

// cancelled is the answer to a call whose caller has gone, or asked for that.
func cancelled() error { return api.Failure(api.CodeCancelled, "", "the call was cancelled") }
