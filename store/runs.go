package store

import (
	"errors"
	"fmt"
	"time"

	"clove.run/clove/agent"
)

// Enqueue stores a new run in StateQueued. It has its name from now on, and no id
// range before Begin.
func (s *Store) Enqueue(run agent.Run) (agent.Run, error) {
	if err := checkNew(run); err != nil {
		return agent.Run{}, err
	}
	run.State, run.Lease = agent.StateQueued, nil
	if run.Created.IsZero() {
		run.Created = time.Now().UTC()
	}
	err := s.update(func(t *tables) error {
		if err := t.nameFree(run); err != nil {
			return err
		}
		// An error of any of them takes the whole transaction back (bbolt's Update).
		return errors.Join(t.putName(run), t.put(run), t.note(run, agent.RunQueued, run.StartedBy()))
	})
	if err != nil {
		return agent.Run{}, err
	}
	return run, nil
}

// Begin stores a run in StateStarting: a new one, or one that was queued. It
// takes the name and the lowest free id range, which it writes into run.Lease;
// the lease's other fields are the caller's. Created is set unless the caller
// did. Of a queued run everything but its spec stays as it was stored.
func (s *Store) Begin(run agent.Run) (agent.Run, error) {
	if err := checkNew(run); err != nil {
		return agent.Run{}, err
	}
	lease := agent.Lease{}
	if run.Lease != nil {
		// A copy: the caller's Lease is not written to.
		lease = *run.Lease
	}
	err := s.update(func(t *tables) (err error) {
		if err = t.mayStart(); err != nil {
			return err
		}
		if run, err = t.admit(run); err != nil {
			return err
		}
		index, ok := t.lowestFreeRange()
		if !ok {
			return &agent.Error{Kind: agent.KindBusy, Step: step,
				Message: fmt.Sprintf("all %d ranges of host ids are leased to live runs", agent.IDRanges),
				Hint:    "wait until a run ends; clove gc ends those whose supervisor died"}
		}
		lease.IDRange = index
		run.Lease, run.State = &lease, agent.StateStarting
		if run.Created.IsZero() {
			run.Created = time.Now().UTC()
		}
		return errors.Join(t.putName(run), t.leases.Put(rangeKey(index), []byte(run.Spec.ID)), t.put(run),
			t.note(run, agent.RunStarting, ""))
	})
	if err != nil {
		return agent.Run{}, err
	}
	return run, nil
}

// admit returns the run that begins: itself when it is new, or what was queued.
func (t *tables) admit(run agent.Run) (agent.Run, error) {
	queued, err := t.get([]byte(run.Spec.ID))
	switch {
	case err != nil:
		return run, err
	// cloved refuses to rename a run that is being started, so this is a mistake in it: the
	// supervisor would report under a name that may be another run's by now.
	case queued != nil && queued.State == agent.StateQueued && queued.Spec.Name != run.Spec.Name:
		return run, broken("run %s is called %q, not %q", run.Spec.ID, queued.Spec.Name, run.Spec.Name)
	case queued != nil && queued.State == agent.StateQueued:
	case run.Spec.Detached:
		// It was queued once, and was ended or removed since. Stored as a new run it would
		// have no owner, and a run that was removed would come back.
		return run, Unqueued(run.Spec.Name)
	default:
		return run, t.nameFree(run)
	}
	// The rest is as it is stored now, and not as it was when cloved decided: a stop that
	// came in between counts.
	queued.Spec = run.Spec
	queued.DropStaleLayer()
	return *queued, nil
}

// Requeue moves an ended run back to the queue: its record becomes the
// previous one, and its layer stays. change may be nil.
func (s *Store) Requeue(id agent.ID, change func(*agent.Run)) (agent.Run, error) {
	return s.move(id, agent.EventRequeued, change, func(_ *tables, run *agent.Run, _ agent.State) error {
		run.Previous, run.Record, run.Started = run.Record, nil, time.Time{}
		return nil
	})
}

// Amend changes fields of a run that no index and no state depends on, and logs
// the event what. Rename changes the name.
func (s *Store) Amend(id agent.ID, what agent.RunEventKind, detail string, change func(*agent.Run)) (agent.Run, error) {
	return s.edit(id, func(t *tables, run *agent.Run) error {
		if err := changed(run, string(what), change); err != nil {
			return err
		}
		return errors.Join(t.put(*run), t.note(*run, what, detail))
	})
}

// Caused notes the call from which the ends of runs will follow, before it ends them. Those that have ended, or are
// gone, are left alone. There is no event of it.
func (s *Store) Caused(call string, runs ...agent.ID) error {
	return s.update(func(t *tables) error {
		for _, id := range runs {
			run, err := t.get([]byte(id))
			if err != nil {
				return err
			}
			if run == nil || run.State == agent.StateEnded {
				continue
			}
			run.Queue.Cause = call
			if err := t.put(*run); err != nil {
				return err
			}
		}
		return nil
	})
}

// edit runs f in one transaction with the stored run id, and returns what f made of it.
func (s *Store) edit(id agent.ID, f func(*tables, *agent.Run) error) (edited agent.Run, err error) {
	err = s.update(func(t *tables) error {
		run, err := t.mustGet(id)
		if err != nil {
			return err
		}
		err = f(t, run)
		edited = *run
		return err
	})
	if err != nil {
		return agent.Run{}, err
	}
	return edited, nil
}

// changed runs a caller's change, which may be nil. It must leave alone what the
// indexes and the state table depend on.
func changed(run *agent.Run, event string, change func(*agent.Run)) error {
	if change == nil {
		return nil
	}
	before := identityOf(*run)
	called(change, run)
	if identityOf(*run) != before {
		return broken("event %q changed what only the store may change of run %s", event, before.id)
	}
	return nil
}

// Rename gives a run that is queued or has ended another name: a live one's
// supervisor knows it by the old one.
func (s *Store) Rename(id agent.ID, name string) (agent.Run, error) {
	return s.edit(id, func(t *tables, run *agent.Run) error {
		if err := run.CheckOwn(); err != nil {
			return err
		}
		if run.Lease != nil {
			return &agent.Error{Kind: agent.KindConflict, Step: step, Hint: "wait for its end",
				Message: fmt.Sprintf("run %s (%s) is %s, and cannot be renamed until it has ended", run.Spec.Name, id, run.State)}
		}
		old := run.Name()
		run.Spec.Name = name
		if err := checkName(run.Spec); err != nil {
			return err
		}
		// Without the id: nameFree would find the run itself by it.
		if err := t.nameFree(agent.Run{Owner: run.Owner, Spec: agent.Spec{Name: name}}); err != nil {
			return err
		}
		if run.Record != nil {
			// The record has the name too (wrongRecord compares the two), and it is the one
			// that users get from wait and inspect.
			run.Record.Name = name
		}
		return errors.Join(t.names.Delete(nameKey(old)), t.putName(*run), t.put(*run),
			t.note(*run, agent.RunRenamed, "was "+old.Name))
	})
}

// Apply moves run id by event e, and stores the fields that change sets; change may
// be nil. Events that end or queue a run have methods of their own.
func (s *Store) Apply(id agent.ID, e agent.Event, change func(*agent.Run)) (agent.Run, error) {
	return s.move(id, e, change, func(t *tables, run *agent.Run, next agent.State) error {
		switch next {
		case agent.StateEnded:
			return broken("event %q ends run %s, which takes a record", e, id)
		case agent.StateStarting, agent.StateQueued:
			return broken("event %q of run %s has a method of its own", e, id)
		}
		return nil
	})
}

// Finish moves run id by its last event: it sets the record and gives the
// lease back. A run whose Spec says Remove is forgotten in the same transaction.
func (s *Store) Finish(id agent.ID, e agent.Event, record agent.Record, change func(*agent.Run)) (agent.Run, error) {
	return s.move(id, e, change, func(t *tables, run *agent.Run, next agent.State) error {
		if next != agent.StateEnded {
			return broken("event %q does not end run %s", e, id)
		}
		if problem := wrongRecord(run.Spec, record); problem != "" {
			return broken("the record of run %s: %s", id, problem)
		}
		var err error
		if run.Lease != nil {
			err = t.leases.Delete(rangeKey(run.Lease.IDRange))
		}
		// The supervisor, which writes the record, may not know of a stop that cloved stored, nor
		// of the policy to which an update has led.
		record.Stopped, record.Policy, record.Manifest = run.Queue.Stopped, run.Spec.Policy, run.Spec.Manifest
		run.Lease, run.PID, run.Record = nil, 0, &record
		return err
	})
}

// Remove deletes an ended run and frees its name. The caller removes its layer.
func (s *Store) Remove(id agent.ID) error {
	_, err := s.edit(id, func(t *tables, run *agent.Run) error {
		if run.State != agent.StateEnded {
			return &agent.Error{Kind: agent.KindConflict, Step: step,
				Message: fmt.Sprintf("run %s (%s) is %s, not ended", run.Spec.Name, id, run.State),
				Hint:    "end it first, or wait for its end"}
		}
		return t.forget(*run)
	})
	return err
}

// forget deletes an ended run and its name; an ended run has no lease. Its last event has
// no state, because there is no run any more that could be in one.
func (t *tables) forget(run agent.Run) error {
	run.State = ""
	t.forgot = true
	return errors.Join(t.names.Delete(nameKey(run.Name())), t.runs.Delete([]byte(run.Spec.ID)), t.note(run, agent.RunRemoved, ""))
}

// move takes a stored run to the state that the table gives for e. The order is the
// caller's change, then settle, then the state: neither of the two can overwrite it.
func (s *Store) move(id agent.ID, e agent.Event, change func(*agent.Run),
	settle func(*tables, *agent.Run, agent.State) error) (agent.Run, error) {
	return s.edit(id, func(t *tables, run *agent.Run) error {
		if err := run.CheckOwn(); err != nil {
			return err
		}
		next, err := run.State.Next(e)
		if err != nil {
			return &agent.Error{Kind: agent.KindConflict, Step: step,
				Message: fmt.Sprintf("run %s (%s) has changed meanwhile", run.Spec.Name, id), Err: err}
		}
		if err := changed(run, string(e), change); err != nil {
			return err
		}
		if err := settle(t, run, next); err != nil {
			return err
		}
		run.State = next
		if next == agent.StateEnded && run.Spec.Remove {
			// Two events: a reader that waits for the end finds its status, and one that
			// keeps a copy of the runs learns that this one is gone.
			return errors.Join(t.note(*run, whatOf[e], ""), t.forget(*run))
		}
		return errors.Join(t.put(*run), t.note(*run, whatOf[e], ""))
	})
}

// identity is the part of a run that the indexes and the state table depend on.
type identity struct {
	id       agent.ID
	name     agent.RunName
	state    agent.State
	idRange  int
	recorded bool
}

// identityOf makes a comparable value, with -1 for no lease: 0 is a range.
func identityOf(run agent.Run) identity {
	i := identity{run.Spec.ID, run.Name(), run.State, -1, run.Record != nil}
	if run.Lease != nil {
		i.idRange = run.Lease.IDRange
	}
	return i
}

// Unqueued is the error of a run that was ended or removed while it was queued.
func Unqueued(name string) error {
	return &agent.Error{Kind: agent.KindConflict, Step: "queue", Message: name + " was ended before it was started"}
}

// wrongRecord checks that a record is its run's, so that the end of one agent is not
// reported for another. It returns "" if it is.
func wrongRecord(spec agent.Spec, record agent.Record) string {
	switch {
	case record.ID != spec.ID:
		return fmt.Sprintf("it is of run %q", record.ID)
	case record.Name != spec.Name:
		return fmt.Sprintf("it has the name %q", record.Name)
	case record.Version < 1 || record.Version > agent.RecordVersion:
		return fmt.Sprintf("it has version %d", record.Version)
	}
	return ""
}

// broken is the error for a mistake in the calling code.
func broken(format string, arguments ...any) error {
	return &agent.Error{Kind: agent.KindInternal, Step: step, Message: fmt.Sprintf(format, arguments...)}
}
