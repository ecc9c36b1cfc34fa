package kernel

import (
	"cmp"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/audit"
	"clove.run/clove/kernel/budget"
	"clove.run/clove/kernel/budgets"
	"clove.run/clove/kernel/mail"
	"clove.run/clove/kernel/service"
	"clove.run/clove/kernel/state"
	"clove.run/clove/store"
)

// kindOf is the kind of audit entry that an event of a run becomes; empty: none.
func kindOf(e agent.RunEventKind) audit.Kind {
	switch e {
	case agent.RunStarted:
		return audit.KindStart
	case agent.RunEnded, agent.RunLost:
		return audit.KindEnd
	case agent.RunUpdated:
		return audit.KindLimit
	case agent.RunRemoved, agent.RunRenamed, agent.RunPaused, agent.RunResumed, agent.RunStopRequested:
		return audit.KindAdmin
	}
	return ""
}

// Happened records what happened to a run of a namespace. Where the run ends, what its agent
// had reserved is settled; where it is removed, its grants and its account are forgotten.
func (k *Kernel) Happened(e agent.RunEvent, namespace string) error {
	if err := k.spawn.Happened(e); err != nil {
		return err
	}
	if e.Kind == agent.RunStarted {
		k.alarm.set(k.spawn.Launcher.Begun(e.ID, k.engine.Now()))
	}
	kind := kindOf(e.Kind)
	if kind == "" {
		return nil
	}
	entry := audit.Entry{Time: e.Time, Kind: kind, Owner: e.Owner.UID, Namespace: namespace, Agent: e.Name, Run: e.ID, Method: string(e.Kind), What: cmp.Or(e.Detail, string(e.Status)), Causation: e.Causation, Correlation: e.Correlation}
	if kind == audit.KindEnd {
		known := k.engine.Cause(e.ID)
		if e.Causation == "" {
			entry.Causation, entry.Correlation = known, known
		}
	}
	if e.Kind == agent.RunStarted {
		if began, err := k.began(e); began || err != nil {
			return err
		}
	}
	if kind != audit.KindEnd && e.Kind != agent.RunRemoved {
		return k.log.Enqueue(entry)
	}
	err := k.end(e, entry)
	if err != nil && api.ErrorOf(err).Code == api.CodeStorage {
		// Reservations are settled when the run starts again, or by Sweep.
		_, err = k.log.AppendEnd(entry)
	}
	return err
}

// began reports whether begin has recorded the start: that of each run which shares.
func (k *Kernel) began(e agent.RunEvent) (began bool, err error) {
	err = k.engine.Read(func(tx *store.KernelTx) error {
		began, err = budgets.Began(tx, e.Owner.UID, e.ID)
		return err
	})
	return began, err
}

// end settles and forgets, together with the entry.
func (k *Kernel) end(e agent.RunEvent, entry audit.Entry) error {
	until := e.Time // the event may come late, when the next start has reserved again
	if e.Kind == agent.RunRemoved {
		until = time.Time{}
	}
	if err := k.Ledger.EndSpares(e.ID); err != nil {
		return err
	}
	k.budgets.Forget(e.ID)
	run := agent.Run{Spec: agent.Spec{ID: e.ID, Name: e.Name}, Owner: e.Owner}
	return k.engine.Within(run, string(e.Kind), "", func(c *service.Call) (out service.Outcome, err error) {
		if out, err = k.settleOpen(c.Tx, e.ID, until); err != nil {
			return out, err
		}
		if err := k.asks.End(c.Tx, e.ID, until, &out); err != nil {
			return out, err
		}
		if e.Kind == agent.RunRemoved {
			holders, err := forgetRun(c.Tx, e.Owner.UID, e.ID)
			if err != nil {
				return out, err
			}
			out.Changed = append(out.Changed, holders...)
		}
		out.Topics = append(out.Topics, mail.Room(e.Owner.UID)) // a sender may wait for its mailbox
		return out, service.Record(c.Tx, entry)
	})
}

// Sweep forgets the accounts of runs that are not known any more, and settles what runs
// that do not live have reserved, children that do not live among that, and as Ledger.Recover does: a cloved that was killed may have left
// all of that. Reservations that flies reports are left, as a service still works for them.
func (k *Kernel) Sweep(known, lives func(agent.ID) bool, flies func(budget.Reservation) bool) error {
	err := k.Ledger.Recover(func(r budget.Reservation) bool {
		if budgets.OfChild(r) {
			return !lives(r.Run) || !lives(agent.ID(r.ID))
		}
		return !budgets.OfCalls(r) && (!flies(r) || !lives(r.Run))
	})
	if err != nil {
		return err
	}
	var accounts []budget.Key
	err = k.engine.Read(func(tx *store.KernelTx) error {
		all, err := store.Accounts.Under(tx, "")
		for _, a := range all {
			accounts = append(accounts, a.Key)
		}
		return err
	})
	for _, key := range accounts {
		if run, ok := key.Run(); ok && !lives(run) && err == nil {
			err = k.sweep(key, run, known(run))
		}
	}
	return err
}

// sweep settles what a run has open that does not live, and forgets one that is not known. No
// supervisor is attached yet that would have to know of an account above.
func (k *Kernel) sweep(key budget.Key, run agent.ID, known bool) error {
	uid, _ := key.Owner()
	return k.engine.Update("sweep", func(tx *store.KernelTx) error {
		if _, err := k.settleOpen(tx, run, time.Time{}); err != nil || known {
			return err
		}
		_, err := forgetRun(tx, uid, run)
		return err
	})
}

// RecoverChildren is spawn.Recover. From then on runs are started for jobs and for mail.
func (k *Kernel) RecoverChildren() error {
	err := k.spawn.Recover()
	k.starts.Store(true)
	k.alarm.set(k.engine.Now())
	return err
}

// ChildWaits is spawn.Waits.
func (k *Kernel) ChildWaits(id agent.ID) (bool, error) { return k.spawn.Waits(id) }

// forgetRun is store.KernelTx.ForgetRun, with the run's mailbox and its keys.
func forgetRun(tx *store.KernelTx, uid uint32, run agent.ID) ([]agent.ID, error) {
	holders, err := tx.ForgetRun(uid, run)
	return holders, cmp.Or(err, mail.Forget(tx, uid, run), state.Forget(tx, uid, run))
}
