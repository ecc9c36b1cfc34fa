package service

import (
	"encoding/json"

	"clove.run/clove/api"
	"clove.run/clove/store"
)

// Prepared makes a method that changes something after work that takes long, such as a copy of files.
// prepare works without a transaction, for as long as the call's Context lasts, and comes after the
// stages grant and taints, and after the look for the answer to the same key. Then the call passes
// all stages as one of Write does, and do has what prepare returned. It may run more than once. Where
// the call is refused after all, drop takes back what was prepared; nil: there is nothing to take back.
func Prepared[P, W, R any](row api.Row[P, R], stages Stages[P], prepare func(*Call, P) (W, error),
	do func(*Call, P, W) (R, Outcome, error), drop func(W)) Method {
	m := method(writes, row, stages, func(c *Call, p P) (R, Outcome, error) {
		work, _ := c.prepared.(W) // none of a call that another carries
		return do(c, p, work)
	})
	m.prepare = func(c *Call, params any) (any, error) { return prepare(c, params.(P)) }
	m.drop = func(prepared any) {
		if drop != nil {
			drop(prepared.(W))
		}
	}
	return m
}

// Carried is a method of Prepared that another call may carry, although nothing is prepared for it then: do has
// the zero value.
func (m Method) Carried() Method { m.carried = true; return m }

// prepared does the work of a method before its transaction. undone takes it back. first is the answer
// that an earlier call with the key got.
func (e *Engine) prepared(w *waiter) (first json.RawMessage, undone func(), err error) {
	c, none := w.call, func() {}
	if w.method.prepare == nil {
		return nil, none, nil
	}
	if c.key, err = keyOf(w.params); err != nil {
		return nil, none, err
	}
	if c.key != "" {
		if _, busy := e.preparing.LoadOrStore(c.keptBelow(), true); busy {
			return nil, none, api.Failure(api.CodeBusy, "ask again in a moment", "a call with the key %.64q is under way", c.key)
		}
		defer e.preparing.Delete(c.keptBelow())
	}
	if err := e.Room(); err != nil {
		return nil, none, err
	}
	asked := false
	err = e.Read(func(tx *store.KernelTx) (err error) {
		c.again(tx, e.now())
		if first, err = c.repeated(); err != nil || first != nil {
			return err
		}
		if asked, err = e.open(w); err != nil || asked {
			return err
		}
		return e.pass(c, stages[:2])
	})
	c.Tx = nil
	if err == nil && asked {
		err = errAsked
	}
	if err != nil || first != nil {
		return first, none, err
	}
	if c.prepared, err = w.method.prepare(c, w.params); err != nil {
		return nil, none, err
	}
	return nil, func() { w.method.drop(c.prepared) }, nil
}
