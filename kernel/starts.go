package kernel

import (
	"cmp"
	"context"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/audit"
	"clove.run/clove/kernel/blobs"
	"clove.run/clove/kernel/budgets"
	"clove.run/clove/kernel/handoff"
	"clove.run/clove/kernel/lease"
	"clove.run/clove/kernel/mail"
	"clove.run/clove/kernel/names"
	"clove.run/clove/kernel/service"
	"clove.run/clove/kernel/spawn"
	"clove.run/clove/store"
)

// Attach makes a run's grants and budgets ready, unless they are from an earlier start,
// and calls changed with how the run stands: once before it returns, and after each change
// until ctx ends. Where begins is set the run starts: what its agent had reserved before is
// settled as if all had been used.
func (k *Kernel) Attach(ctx context.Context, run agent.Run, begins bool, changed func(api.Standing)) error {
	if begins {
		if err := k.asks.Answerable(run); err != nil {
			return err
		}
		if err := k.Ledger.EndSpares(run.Spec.ID); err != nil {
			return err
		}
	}
	start, err := k.begin(run, begins)
	if err != nil {
		return err
	}
	var spent []service.Notice
	if begins {
		if spent, err = k.spentBefore(run); err != nil {
			return err
		}
	}
	return k.engine.Attach(ctx, run, start, spent, changed)
}

// spentBefore are the notices about budgets of which nothing is left when a run starts.
func (k *Kernel) spentBefore(run agent.Run) (notices []service.Notice, err error) {
	err = k.engine.Read(func(tx *store.KernelTx) error {
		standing, _, err := k.standing(tx, run, k.engine.Now())
		notices = budgets.SpentBefore(standing)
		return err
	})
	return notices, err
}

// begin makes a run's account and its first grants, at its first start; those of a manifest at each.
// Where the run starts it returns the number of the start.
func (k *Kernel) begin(run agent.Run, begins bool) (start int, err error) {
	if err := k.engine.Room(); err != nil && begins {
		return 0, err
	}
	err = k.engine.Within(run, string(audit.KindStart), "", func(c *service.Call) (out service.Outcome, err error) {
		var fresh bool
		if start, fresh, err = budgets.Begin(c, begins); err != nil {
			return out, err
		}
		switch {
		case fresh:
			err = k.grants.Begin(c)
		case begins:
			if out, err = k.settleOpen(c.Tx, run.Spec.ID, time.Time{}); err == nil {
				var anew service.Outcome
				anew, err = k.grants.Anew(c)
				out.Add(anew)
				err = cmp.Or(err, spawn.Begins(c.Tx, run.Spec.ID))
			}
		default:
			return out, nil
		}
		if begins && err == nil {
			err = k.takeName(c, &out)
		}
		started := c.Entry(string(agent.RunStarted), "", "")
		started.Kind = audit.KindStart
		return out, cmp.Or(err, service.Record(c.Tx, started))
	})
	if err != nil {
		start = 0
	}
	return start, err
}

// settleOpen settles what was reserved for a run until a moment; zero: all. Its calls that wait for
// people are gone with it, and so are offers to it and of it, and its names; the jobs that it
// holds come back.
func (k *Kernel) settleOpen(tx *store.KernelTx, run agent.ID, until time.Time) (service.Outcome, error) {
	out, err := budgets.SettleOpen(tx, run, until, k.engine.Now(), func(id string) bool { return k.Ledger.Unused(run, id) })
	return out, cmp.Or(err, service.ForgetQuestions(tx, run), handoff.Forget(tx, run, until), blobs.Forget(tx, run, until), k.endNames(tx, run, until, &out), k.jobs.Free(tx, run, until, k.engine.Now(), &out))
}

// endNames takes from a run the names that it has held since before a moment, and gives the mail by them to
// other holders.
func (k *Kernel) endNames(tx *store.KernelTx, run agent.ID, until time.Time, out *service.Outcome) error {
	gone, err := names.Forget(tx, run, until)
	for _, r := range gone {
		if err != nil {
			return err
		}
		var next agent.ID
		if len(r.Holders) > 0 {
			next = r.Holders[0].Run
		}
		var more service.Outcome
		more, err = mail.Return(tx, run, r.Owner, r.Namespace, r.Name, next, r.Reserved, k.engine.Now())
		out.Add(more)
		if err == nil && r.Reserved {
			err = k.keepLetters(tx, run, r)
		}
		if err == nil && r.Reserved && next == "" {
			err = k.names.Again(tx, r.Owner, r.Namespace, r.Name, k.engine.Now(), out)
		}
	}
	return err
}

// idle ends a run of runs whose agent has only waited for the time of its spec, unless there is something for it to do.
func (k *Kernel) idle(runs spawn.Runs) func(agent.Run) {
	if runs == nil {
		return nil
	}
	return func(run agent.Run) {
		ends, err := service.EndIdle(k.engine, run, k.busy)
		if err == nil && ends && runs.EndIdle(run.Spec.ID) != nil {
			service.Resume(k.engine, run.Spec.ID)
		}
	}
}

// busy reports whether the run of a call has mail that it has not acknowledged, a job, or children that live. If not,
// mail by its names is for the next run.
func (k *Kernel) busy(c *service.Call) (bool, error) {
	id := c.Run.Spec.ID
	mailed, err := mail.Has(c.Tx, c.Run)
	if err != nil || mailed {
		return mailed, err
	}
	held, err := lease.HeldBy(c.Tx, id)
	if err != nil || len(held) > 0 {
		return true, err
	}
	if has, err := spawn.HasChildren(c.Tx, id); err != nil || has {
		return true, err
	}
	return false, names.Idle(c.Tx, id)
}

// Meter charges what the Linux kernel has counted of a run since a start, by dimension.
func (k *Kernel) Meter(run agent.Run, start int, totals map[string]int64) error {
	return k.engine.Within(run, "meter", "", func(c *service.Call) (service.Outcome, error) {
		return k.budgets.Meter(c, start, totals)
	})
}
