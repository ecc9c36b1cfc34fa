package service

import (
	"cmp"
	"encoding/json"
	"errors"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/audit"
	"clove.run/clove/store"
)

// question is a call of an agent that waits for people. It survives a restart: the call is done
// when they have answered, whether or not its caller still waits, and the answer is kept below the
// call's key.
type question struct {
	Run    agent.ID        `json:"run"`
	ID     string          `json:"id"`   // where the answer is kept
	Call   string          `json:"call"` // the id of the call, below which its costs are reserved
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Key    string          `json:"key"`
	Digest string          `json:"digest"`
	Asked  time.Time       `json:"asked"`
	// Granted says that an approval takes the place of the grant that the call lacks, and Bound is Asking.Bound.
	Granted bool   `json:"granted,omitempty"`
	Bound   string `json:"bound,omitempty"`
}

// questionsMost bounds the questions of a run's agent that are open.
const questionsMost = 128

// Questions is the table of calls that wait for people.
var Questions = store.Table[question]{
	Bucket: "questions", Noun: "question", OfRun: true,
	Key: func(q *question) string { return questionKey(q.Run, q.ID) },
	Sound: func(q *question) error {
		if !q.Run.Valid() || q.Method == "" || q.Key == "" {
			return errors.New("it has no run, no method or no key")
		}
		return nil
	},
	Bound: store.Bound[question]{Most: questionsMost, Error: func(q *question) error {
		return api.Failure(api.CodeBusy, "wait for the answers", "%d calls of %s wait for people", questionsMost, q.Run)
	}},
}

func questionKey(run agent.ID, id string) string { return string(run) + "/" + id }

// Question names a call that waits for people, for the service that has them answer.
type Question struct {
	Run agent.ID
	ID  string
}

// Question is the name of the call's question.
func (c *Call) Question() Question { return Question{c.Run.Spec.ID, c.keptBelow()} }

func (q Question) topic() Topic { return Topic("question/" + questionKey(q.Run, q.ID)) }

// open reports whether the call has asked people before, and they have not answered.
func (e *Engine) open(w *waiter) (bool, error) {
	c := w.call
	if !w.method.asks || !c.Agent || c.key == "" {
		return false, nil
	}
	q, err := Questions.Get(c.Tx, questionKey(c.Run.Spec.ID, c.keptBelow()))
	if err == nil && q != nil && q.Digest != c.digest() {
		err = otherCall(c.key)
	}
	return q != nil, err
}

// ask stores a call that people must approve, and asks them.
func (e *Engine) ask(w *waiter) (asked bool, err error) {
	c := w.call
	if !c.Agent || c.declared.Approve == "" && !c.uncovered {
		return false, nil
	}
	switch {
	case c.key == "":
		return false, api.Failure(api.CodeParams, `say "key"`, "people approve this call first, and its answer is found by its key").By(StageApproval, "")
	case e.config.Approvals == nil:
		return false, notServed(StageApproval)
	}
	asking := Asking{What: c.declared.Approve}
	if c.uncovered {
		if asking, err = w.method.question(c, w.params); err != nil {
			return false, err
		}
	}
	out, err := e.config.Approvals.Ask(c, asking)
	if err != nil {
		return false, of(StageApproval, err)
	}
	c.out.Add(out)
	c.out.Reason = asking.What
	q := question{Granted: c.uncovered, Bound: asking.Bound, Run: c.Run.Spec.ID, ID: c.keptBelow(), Call: c.ID, Method: c.Method, Params: c.text, Key: c.key, Digest: c.digest(), Asked: c.Now}
	return true, cmp.Or(Questions.Put(c.Tx, &q), Record(c.Tx, c.entry("")))
}

// forPeople lets a call wait for the answer to its question.
func (w *waiter) forPeople() {
	w.try = w.findAnswer
	w.topic = w.call.Question().topic()
	w.engine.topics.enter(w)
}

// findAnswer looks for the answer that is kept below the call's key.
func (w *waiter) findAnswer() (result json.RawMessage, err error) {
	c := w.call
	readErr := w.engine.Read(func(tx *store.KernelTx) error {
		c.again(tx, w.engine.now())
		result, err = c.repeated()
		return err
	})
	if err = cmp.Or(err, readErr); err == nil && result == nil {
		err = ErrNotYet
	}
	return result, err
}

// Answered does the calls whose questions people have answered. The service that keeps the answers
// calls it when they are durable; the engine does when a run's supervisor comes back.
func (e *Engine) Answered(q Question) error {
	a := e.attachmentOf(q.Run)
	if a == nil { // its supervisor comes back, or the run has ended
		return nil
	}
	return e.answers.carry(q, slow(e, q), func() error {
		err := carryOut(e, a.run, q, nil)
		if err == nil || e.answers.context.Err() != nil {
			return err
		}
		switch fault := api.ErrorOf(err); fault.Code {
		case api.CodeStorage, api.CodeBusy, api.CodeInternal, api.CodeDraining, api.CodeCancelled: // it stays open, and is tried again
			return err
		default:
			return carryOut(e, a.run, q, fault) // what was written before the refusal was not kept
		}
	})
}

// carryOut does a call that people have approved, or keeps the refusal as its answer. The stages
// before the question are passed once more: a grant may have been revoked meanwhile. What takes long is prepared anew:
// nothing is kept ready while people think.
func carryOut(e *Engine, run agent.Run, name Question, refusal *api.Error) error {
	if err := e.Room(); err != nil {
		return err
	}
	work, drop, err := readied(e, run, name, refusal)
	if err != nil {
		return err
	}
	var c *Call
	err = e.update("approval", func(tx *store.KernelTx) error {
		c = nil
		q, err := Questions.Get(tx, questionKey(name.Run, name.ID))
		if err != nil || q == nil {
			return err
		}
		w, err := stored(e, run, *q)
		if err != nil {
			return err
		}
		c = w.call
		c.Tx, c.Now = tx, e.now()
		c.prepared = work
		answer, why, err := e.config.Approvals.Decided(c)
		if err != nil || answer == Undecided || answer == Approved && refusal == nil && w.method.prepare != nil && work == nil {
			c = nil
			return err
		}
		if refusal != nil {
			return cmp.Or(e.deny(c, refusal), Questions.Delete(tx, questionKey(q.Run, q.ID)))
		}
		if answer == Denied {
			return refusedByPeople(why)
		}
		if err := e.pass(c, stages[:2]); err != nil {
			return err
		}
		if _, err := e.do(w); err != nil || c.out.Refusal != nil {
			return cmp.Or(err, c.out.Refusal)
		}
		return Questions.Delete(tx, questionKey(q.Run, q.ID))
	})
	if err != nil || c == nil || refusal != nil {
		drop()
	}
	if err != nil || c == nil {
		return err
	}
	err = e.settled(c)
	e.topics.touch(name.topic())
	return err
}

// deny keeps a refusal as the answer of a call, of which nothing was used.
func (e *Engine) deny(c *Call, refusal *api.Error) error {
	text, err := json.Marshal(refusal)
	if err != nil {
		return err
	}
	if len(c.declared.Costs) > 0 {
		out, err := e.config.Ledger.Settle(c, nil)
		if err != nil {
			return err
		}
		c.out.Add(out)
	}
	entry := c.entry(audit.VerdictDeny)
	entry.Code, entry.Rule = refusal.Data.Word, refusal.Data.Rule
	return cmp.Or(c.keep(kept{Digest: c.digest(), Error: text}), Record(c.Tx, entry))
}

// stored makes the call of a question anew.
func stored(e *Engine, run agent.Run, q question) (*waiter, error) {
	m, served := e.methods[q.Method]
	if !served {
		return nil, noMethod(false, q.Method)
	}
	params, err := m.Decode(q.Params)
	if err != nil {
		return nil, err
	}
	c := &Call{Caller: Caller{Run: run, Agent: true, UID: run.Owner.UID, ID: q.Call}, Method: q.Method, key: q.Key, text: q.Params, digested: q.Digest,
		Context: e.answers.context, engine: e, approved: q.Granted, bound: q.Bound}
	c.declared, err = m.declare(params)
	return &waiter{engine: e, call: c, method: m, params: params}, err
}

// resume does the calls of a run that people answered while no supervisor was attached.
func (e *Engine) resume(run agent.ID) error {
	var all []*question
	err := e.Read(func(tx *store.KernelTx) (err error) {
		all, err = Questions.Below(tx, string(run)+"/")
		return err
	})
	for _, q := range all {
		err = cmp.Or(err, e.Answered(Question{q.Run, q.ID}))
	}
	return err
}

// ForgetQuestions removes the questions of a run that has ended: its calls are gone.
func ForgetQuestions(tx *store.KernelTx, run agent.ID) error {
	all, err := Questions.Below(tx, string(run)+"/")
	for _, q := range all {
		err = cmp.Or(err, Questions.Delete(tx, questionKey(q.Run, q.ID)))
	}
	return err
}
