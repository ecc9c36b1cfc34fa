package kernel

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/methods"
	"clove.run/clove/audit"
	"clove.run/clove/kernel/budget"
	"clove.run/clove/kernel/channel"
	"clove.run/clove/kernel/ledger"
	"clove.run/clove/kernel/service"
	"clove.run/clove/store"
)

// Own answers for one run in the foreground, where no cloved runs: the run has its own
// grants and budgets only. It is a runtime.Kernel.
type Own struct {
	Config // without Store, Log, LogDir and Queued
	// Dir and Audit are the directories of the file and of the log.
	Dir, Audit func(agent.ID) string
	// Kept is the file of root's secrets, which is cloved's.
	Kept string

	mu     sync.Mutex // guards the following
	kernel *Kernel
	log    *audit.Log
	run    agent.Run
}

// openTime bounds the wait for a file that no other process opens.
const openTime = time.Second

// Attach opens the run's file and log.
func (o *Own) Attach(ctx context.Context, run agent.Run, changed func(api.Standing)) error {
	path := filepath.Join(o.Dir(run.Spec.ID), "kernel.db")
	file, err := store.OpenKernel(path, openTime, Tables()...)
	if err != nil {
		return err
	}
	log, err := audit.Open(o.Audit(run.Spec.ID), audit.RunOptions())
	if err != nil {
		return errors.Join(err, file.Close())
	}
	c := o.Config
	c.Store, c.Log, c.LogDir = file, log, o.Audit(run.Spec.ID)
	o.Store, o.log = file, log
	k, err := New(c)
	if err != nil {
		return errors.Join(err, log.Close(), file.Close())
	}
	o.mu.Lock()
	o.kernel, o.run = k, run
	o.mu.Unlock()
	return k.Attach(ctx, run, true, changed)
}

// Serve answers the run's agent on the channel to its gate.
func (o *Own) Serve(ctx context.Context, run agent.ID, calls *os.File) error {
	return o.Calls(ctx, run, channel.New(calls))
}

// Calls answers the run's agent on a channel.
func (o *Own) Calls(ctx context.Context, _ agent.ID, calls *channel.Conn) error {
	return calls.Serve(ctx, func(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
		return o.Call(ctx, "", method, params)
	})
}

// Call is one call of the run's agent.
func (o *Own) Call(ctx context.Context, _ agent.ID, method string, params json.RawMessage) (json.RawMessage, error) {
	caller := service.Caller{Run: o.run, Agent: true, UID: o.run.Owner.UID}
	return o.attached().Call(ctx, caller, service.Request{Method: method, Text: params})
}

// Ask puts a question, which Respond answers, and waits for the answer.
func (o *Own) Ask(ctx context.Context, question api.ApprovalAskParams, asked func(api.Approval)) (api.Approval, error) {
	a, err := o.approval(ctx, methods.ApprovalAsk.Name, question)
	if err == nil && a.State == api.ApprovalWaits {
		if asked != nil {
			asked(a)
		}
		a, err = o.Answered(ctx, a.ID)
	}
	if err == nil && a.State == api.ApprovalAllowed && a.Once {
		return o.approval(ctx, methods.ApprovalUse.Name, api.ApprovalUseParams{Run: question.Run, ID: a.ID})
	}
	return a, err
}

// Asked waits for the answer to a question that stands.
func (o *Own) Asked(ctx context.Context, id string, asked func(api.Approval)) (api.Approval, error) {
	a, err := o.approval(ctx, methods.ApprovalGet.Name, api.ApprovalGetParams{ID: id})
	if err != nil || a.State != api.ApprovalWaits {
		return a, err
	}
	asked(a)
	return o.Answered(ctx, id)
}

// Answered waits until a question waits no more.
func (o *Own) Answered(ctx context.Context, id string) (api.Approval, error) {
	return o.approval(ctx, methods.ApprovalGet.Name, api.ApprovalGetParams{ID: id, Answered: true})
}

// Respond answers a question as the user of this process.
func (o *Own) Respond(ctx context.Context, p api.ApprovalRespondParams) (api.Approval, error) {
	return o.approval(ctx, methods.ApprovalRespond.Name, p)
}

// approval is one call about a question, of the user and not of the agent.
func (o *Own) approval(ctx context.Context, method string, params any) (api.Approval, error) {
	var result api.ApprovalResult
	caller := service.Caller{Run: o.run, UID: uint32(os.Getuid())}
	text, err := json.Marshal(params)
	if err == nil {
		text, err = o.attached().Call(ctx, caller, service.Request{Method: method, Text: text})
	}
	if err == nil {
		err = json.Unmarshal(text, &result)
	}
	return result.Approval, err
}

// Answer brings the answer of the run's --on-ask.
func (o *Own) Answer(ctx context.Context, answer api.ApprovalRespondParams) error {
	_, err := o.Respond(ctx, answer)
	return err
}

// Meter charges the run.
func (o *Own) Meter(_ context.Context, _ agent.ID, start int, totals map[string]int64) error {
	return o.attached().Meter(o.run, start, totals)
}

// Close writes the last audit entries and closes the files. It may be called where Attach
// was not.
func (o *Own) Close() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.kernel == nil {
		return nil
	}
	err := o.kernel.Close()
	return errors.Join(err, o.log.Close(), o.Store.Close())
}

// The methods of the ledger, for the run that is attached.

// Allowed is Ledger.Allowed.
func (o *Own) Allowed(run agent.Run, what string) (bool, error) {
	return o.attached().Ledger.Allowed(run, what)
}

// Left is Ledger.Left.
func (o *Own) Left(run agent.Run, c *ledger.Ceiling) (budget.Left, error) {
	if err := outlasts(c); err != nil {
		return budget.Left{}, err
	}
	return o.attached().Ledger.Left(run, nil)
}

// outlasts refuses what several runs spend together: this file is gone with its run.
func outlasts(c *ledger.Ceiling) error {
	if c == nil || len(c.Limits) == 0 {
		return nil
	}
	return api.Failure(api.CodeUnenforceable, agent.StartCloved(), "the budget of %s is counted by cloved, which does not run", c.Account)
}

// Changed is Ledger.Changed.
func (o *Own) Changed() <-chan struct{} { return o.attached().Ledger.Changed() }

// Reserve is Ledger.Reserve.
func (o *Own) Reserve(run agent.Run, s ledger.Spending) (string, error) {
	if err := outlasts(s.Ceiling); err != nil {
		return "", err
	}
	s.Ceiling = nil
	return o.attached().Ledger.Reserve(run, s)
}

// Renew is Ledger.Renew.
func (o *Own) Renew(run agent.Run, n ledger.Renewal) error {
	if err := outlasts(n.Ceiling); err != nil {
		return err
	}
	n.Ceiling = nil
	return o.attached().Ledger.Renew(run, n)
}

// Settle is Ledger.Settle.
func (o *Own) Settle(run agent.Run, st ledger.Settlement) error {
	st.Ceiling = nil // as for Reserve
	return o.attached().Ledger.Settle(run, st)
}

// attached is the Kernel that Attach made.
func (o *Own) attached() *Kernel {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.kernel
}
