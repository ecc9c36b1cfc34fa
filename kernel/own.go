package kernel

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"sync"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/audit"
	"clove.run/clove/kernel/budget"
	"clove.run/clove/store"
)

// Own answers for one run in the foreground, where no cloved runs: the run has its own
// grants and budgets only. It is a runtime.Kernel.
type Own struct {
	Config // without Store, Log, LogDir and Queued
	// Dir and Audit are the directories of the file and of the log.
	Dir, Audit func(agent.ID) string

	mu     sync.Mutex // guards the following
	kernel *Kernel
	run    agent.Run
}

// openTime bounds the wait for a file that nobody else opens.
const openTime = time.Second

// Attach opens the run's file and log.
func (o *Own) Attach(ctx context.Context, run agent.Run, changed func(api.Standing)) error {
	path := filepath.Join(o.Dir(run.Spec.ID), "kernel.db")
	file, err := store.OpenKernel(path, openTime)
	if err != nil {
		return err
	}
	log, err := audit.Open(o.Audit(run.Spec.ID), audit.RunOptions())
	if err != nil {
		return errors.Join(err, file.Close())
	}
	c := o.Config
	c.Store, c.Log, c.LogDir = file, log, o.Audit(run.Spec.ID)
	o.mu.Lock()
	o.kernel, o.run = New(c), run
	o.mu.Unlock()
	return o.kernel.Attach(ctx, run, true, changed)
}

// Call answers the run's agent.
func (o *Own) Call(_ context.Context, _ agent.ID, method string, params json.RawMessage) (json.RawMessage, error) {
	o.mu.Lock()
	k := o.kernel
	o.mu.Unlock()
	return k.Call(Caller{Run: o.run, Agent: true, UID: o.run.Owner.UID}, method, params)
}

// Meter charges the run.
func (o *Own) Meter(_ context.Context, _ agent.ID, start int, totals map[string]int64) error {
	o.mu.Lock()
	k := o.kernel
	o.mu.Unlock()
	return k.Meter(o.run, start, totals)
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
	return errors.Join(err, o.kernel.config.Log.(*audit.Log).Close(), o.kernel.config.Store.Close())
}

// The methods of services of clove's, for the run that is attached.

// Allowed is Kernel.Allowed.
func (o *Own) Allowed(run agent.Run, what string) (bool, error) {
	return o.attached().Allowed(run, what)
}

// Left is Kernel.Left.
func (o *Own) Left(run agent.Run, c *Ceiling) (budget.Left, error) {
	if err := c.outlasts(); err != nil {
		return budget.Left{}, err
	}
	return o.attached().Left(run, nil)
}

// outlasts refuses what several runs spend together: this file is gone with its run.
func (c *Ceiling) outlasts() error {
	if c == nil || len(c.Limits) == 0 {
		return nil
	}
	return api.Failure(api.CodeUnenforceable, "start cloved (systemctl start clove, or sudo cloved &)", "the budget of %s is counted by cloved, which does not run", c.Account)
}

// Changed is Kernel.Changed.
func (o *Own) Changed() <-chan struct{} { return o.attached().Changed() }

// Reserve is Kernel.Reserve.
func (o *Own) Reserve(run agent.Run, s Spending) (string, error) {
	if err := s.Ceiling.outlasts(); err != nil {
		return "", err
	}
	s.Ceiling = nil
	return o.attached().Reserve(run, s)
}

// Renew is Kernel.Renew.
func (o *Own) Renew(run agent.Run, n Renewal) error {
	if err := n.Ceiling.outlasts(); err != nil {
		return err
	}
	n.Ceiling = nil
	return o.attached().Renew(run, n)
}

// Settle is Kernel.Settle.
func (o *Own) Settle(run agent.Run, st Settlement) error {
	st.Ceiling = nil // as for Reserve
	return o.attached().Settle(run, st)
}

// attached is the Kernel that Attach made.
func (o *Own) attached() *Kernel {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.kernel
}
