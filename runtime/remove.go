package runtime

import (
	"slices"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/store"
)

// Remove forgets an ended run and ends the commands of its budgets: its layer and its log, then its record and its name. In this
// order a clove that is killed in between leaves nothing without a record, and the removal can
// be repeated. The store stays open meanwhile, so that the run cannot be started.
func (r *Runtime) Remove(ref string) error {
	return r.withStore(func(s *store.Store) error {
		run, err := s.Get(ref)
		if err == nil {
			err = checkEnded(run)
		}
		if err != nil {
			return err
		}
		if err := r.removeBelow(s, run, true); err != nil {
			return err
		}
		if err := r.endCommands(run); err != nil {
			return err
		}
		if err := r.removeFiles(run); err != nil {
			return err
		}
		// gofail: var removeEmptied string
		// if err := failpoint(removeEmptied, ""); err != nil { return err }

		return s.Remove(run.Spec.ID)
	})
}

// removeBelow removes the ended runs below an ended one. With all it is an error, and nothing is removed, if
// one has not ended: that spends from the accounts of those above.
func (r *reaper) removeBelow(s *store.Store, run agent.Run, all bool) error {
	if !run.Spec.Kernel.HasChildren() {
		return nil
	}
	runs, err := s.List()
	below := slices.DeleteFunc(runs, func(other agent.Run) bool { return !other.Descends(run.Spec.ID) })
	for _, other := range below {
		if all && other.State != agent.StateEnded {
			return &agent.Error{Kind: agent.KindConflict, Message: run.Spec.Name + " has started " + other.Spec.Name + ", which is " + string(other.State), Hint: "clove stop " + other.Spec.Name + " comes first"}
		}
	}
	for _, other := range below {
		if err == nil && other.State == agent.StateEnded {
			err = r.forget(s, other)
		}
	}
	return err
}

// forget removes the files of an ended run and then its record.
func (r *reaper) forget(s *store.Store, run agent.Run) error {
	if err := r.removeFiles(run); err != nil {
		return err
	}
	return s.Remove(run.Spec.ID)
}

func (r *reaper) removeFiles(run agent.Run) error {
	for _, image := range []string{run.Layer, r.paths.layer(run.Spec.ID)} { // clove's directory may have been moved
		if image == "" {
			continue
		}
		if err := removeLayer(image); err != nil {
			return agent.Failed("layer", err)
		}
	}
	if err := r.paths.Spools().Drop(run.Spec.ID); err != nil {
		return err
	}
	return r.paths.RemoveLog(run.Spec.ID)
}

// Refused is the record of a run that was refused before anything was made:
// it has no usage and enforced nothing.
func Refused(spec agent.Spec, started time.Time, err error) agent.Record {
	v := unstarted(err)
	return agent.Record{
		Version: agent.RecordVersion, ID: spec.ID, Name: spec.Name, Namespace: spec.Kernel.Namespace, Command: append([]string{}, spec.Command...),
		Started: started, Ended: time.Now(),
		Status: v.status, ExitCode: v.exitCode, Error: v.failure,
		Denials: []agent.Denial{}, Enforced: map[string]string{}, Unenforced: []string{}, Policy: spec.Policy, Manifest: spec.Manifest,
	}
}

// Dequeued makes the record of a run that is ended in the queue: its deadline has come, or it was asked to end. At
// the deadline its parent ends, too, which asks it: the deadline counts.
func Dequeued(run agent.Run, now time.Time) agent.Record {
	err := overdue(run, now)
	asked := err == nil
	if asked {
		err = store.Unqueued(run.Spec.Name)
	}
	record := Refused(run.Spec, now, err)
	record.Parent = run.Parent
	if asked { // nothing failed
		record.Status, record.ExitCode = agent.StatusKilled, agent.ExitKilled
	}
	return record
}

// Refuse ends a queued run that could not be begun. One that another process
// has begun meanwhile is left to it. One that was removed needs no record, but its
// starter has created the log again, which is removed.
func (r *Runtime) Refuse(id agent.ID, cause error) error {
	return r.withStore(func(s *store.Store) error {
		run, err := s.Get(string(id))
		if agent.KindOf(err) == agent.KindNotFound {
			return r.paths.RemoveLog(id)
		}
		if err != nil || run.State != agent.StateQueued || r.supervised(id) {
			return err
		}
		if run.Spec.Remove {
			if err := r.paths.RemoveLog(id); err != nil {
				return err
			}
		}
		record := Refused(run.Spec, time.Now(), cause)
		record.Parent = run.Parent
		_, err = s.Finish(id, agent.EventRecorded, record, nil)
		return err
	})
}

// Supervised reports whether the run has a living supervisor.
func (r *Runtime) Supervised(id agent.ID) bool { return r.supervised(id) }
