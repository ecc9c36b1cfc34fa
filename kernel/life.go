package kernel

import (
	"cmp"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/audit"
	"clove.run/clove/kernel/budget"
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
	kind := kindOf(e.Kind)
	if kind == "" {
		return nil
	}
	entry := audit.Entry{Time: e.Time, Kind: kind, Owner: e.Owner.UID, Namespace: namespace, Agent: e.Name, Run: e.ID, Method: string(e.Kind), What: cmp.Or(e.Detail, string(e.Status))}
	if kind == audit.KindEnd {
		entry.Causation = k.causes.take(e.ID)
		entry.Correlation = entry.Causation
	}
	if e.Kind == agent.RunStarted {
		if began, err := k.began(e); began || err != nil {
			return err
		}
	}
	if kind != audit.KindEnd && e.Kind != agent.RunRemoved {
		return k.config.Log.Enqueue(entry)
	}
	err := k.end(e, entry)
	if err != nil && api.ErrorOf(err).Code == api.CodeStorage {
		// What was reserved is settled when the run starts again, or by Sweep.
		_, err = k.config.Log.AppendEnd(entry)
	}
	return err
}

// began reports whether begin has recorded the start: that of each run which shares.
func (k *Kernel) began(e agent.RunEvent) (began bool, err error) {
	err = k.config.Store.Read(func(tx *store.KernelTx) error {
		account, err := tx.Account(budget.RunKey(e.Owner.UID, e.ID))
		began = account != nil
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
	if _, err := k.endSpares(ofRun(e.ID)); err != nil {
		return err
	}
	k.rates.forget(e.ID)
	var ended []budget.Key
	err := k.update(string(e.Kind), func(tx *store.KernelTx) (err error) {
		if ended, err = k.settleUntil(tx, e.ID, until); err != nil {
			return err
		}
		if e.Kind == agent.RunRemoved {
			if _, err := tx.ForgetRun(e.Owner.UID, e.ID); err != nil {
				return err
			}
		}
		return record(tx, entry)
	})
	k.queue.wake()
	return firstError(err, k.publishBelow(e.ID, ended...))
}

// Sweep forgets the accounts of runs that are not known any more, and settles what runs
// that do not live have reserved, and as Recover does: a cloved that was killed may have left
// all of that. What flies reports is left, as a service still works for it.
func (k *Kernel) Sweep(known, lives func(agent.ID) bool, flies func(budget.Reservation) bool) error {
	if err := k.Recover(func(r budget.Reservation) bool { return !flies(r) || !lives(r.Run) }); err != nil {
		return err
	}
	var accounts []budget.Key
	err := k.config.Store.Read(func(tx *store.KernelTx) error {
		all, err := tx.Accounts("")
		for _, a := range all {
			accounts = append(accounts, a.Key)
		}
		return err
	})
	if err != nil {
		return err
	}
	for _, key := range accounts {
		run, ok := key.Run()
		if !ok || lives(run) {
			continue
		}
		uid, _ := key.Owner()
		err := k.update("sweep", func(tx *store.KernelTx) error {
			// Nobody is attached yet who would have to know of an account above.
			if _, err := k.settleUntil(tx, run, time.Time{}); err != nil || known(run) {
				return err
			}
			_, err := tx.ForgetRun(uid, run)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}
