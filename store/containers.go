package store

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"clove.run/clove/agent"
)

// MaxContainers is how many records of OCI containers are kept, so that an engine
// that starts containers again and again cannot fill the store. Agents are not counted.
const MaxContainers = 1000

// containersCut is how many are removed at once. To find the oldest all must be
// read, which is too much work for each new record.
const containersCut = MaxContainers / 10

// KeepContainer stores the record of an OCI container as an ended run of root's.
// The record of an earlier start of the same container becomes the previous one.
// A record that is stored already, with the same start and end, changes nothing:
// a monitor that was killed reports again.
func (s *Store) KeepContainer(c agent.Container, record agent.Record) (agent.Run, error) {
	// The monitor knows no run's id: its record has the engine's id as id and as name,
	// until containerRun puts the run's there.
	if problem := wrongRecord(agent.Spec{ID: agent.ID(c.ID), Name: c.ID}, record); problem != "" {
		return agent.Run{}, &agent.Error{Kind: agent.KindInvalid, Step: step, Message: fmt.Sprintf("the record of container %s: %s", c.ID, problem)}
	}
	if err := c.Validate(); err != nil {
		return agent.Run{}, err
	}
	var run agent.Run
	err := s.update(func(t *tables) error {
		before, err := t.get([]byte(c.RunID()))
		if err != nil {
			return err
		}
		// The run's id is 8 bytes of a hash (agent.Container), so another container, or a
		// run of clove's, could have it.
		if before != nil && (before.Container == nil || *before.Container != c) {
			return &agent.Error{Kind: agent.KindConflict, Step: step, Message: fmt.Sprintf("run %s (%s) has the id of container %s", before.Spec.Name, c.RunID(), c.ID)}
		}
		if before != nil && before.Record.Started.Equal(record.Started) && before.Record.Ended.Equal(record.Ended) {
			run = *before
			return nil
		}
		if run, err = t.containerRun(c, record, before); err != nil {
			return err
		}
		// An event of its own kind, and not that of an agent's end: no counter of agents
		// counts it.
		return errors.Join(t.putName(run), t.put(run),
			t.note(run, agent.ContainerEnded, "container "+c.ID), t.cutContainers())
	})
	return run, err
}

// containerRun makes the run, under a name that is free or that it had before. The short
// name has only the beginning of the engine's id, so two containers may want the same; the
// long one has the run's id in it.
func (t *tables) containerRun(c agent.Container, record agent.Record, before *agent.Run) (agent.Run, error) {
	run := agent.Run{State: agent.StateEnded, Container: &c, Created: record.Started.UTC(), Started: record.Started.UTC(), Record: &record}
	run.Spec = agent.Spec{ID: c.RunID(), Name: c.Name(), Command: record.Command}
	if run.Created.IsZero() {
		return run, &agent.Error{Kind: agent.KindInvalid, Step: step, Message: fmt.Sprintf("the record of container %s does not say when it started", c.ID)}
	}
	if before != nil {
		run.Spec.Name, run.Previous = before.Spec.Name, before.Record
	} else if _, taken := t.Named(run.Name()); taken {
		run.Spec.Name = c.LongName()
	}
	if holder, taken := t.Named(run.Name()); taken && holder != run.Spec.ID {
		return run, &agent.Error{Kind: agent.KindConflict, Step: step, Message: fmt.Sprintf("the name %q is taken by run %s", run.Spec.Name, holder)}
	}
	record.ID, record.Name = run.Spec.ID, run.Spec.Name
	return run, nil
}

// cutContainers removes the oldest containers when there are too many. Their names
// are neighbours in the index: no other run's name has their prefix.
func (t *tables) cutContainers() error {
	var ids []agent.ID
	cursor, prefix := t.names.Cursor(), nameKey(agent.RunName{Name: agent.ContainerPrefix})
	for name, id := cursor.Seek(prefix); bytes.HasPrefix(name, prefix); name, id = cursor.Next() {
		ids = append(ids, agent.ID(id))
	}
	if len(ids) <= MaxContainers {
		return nil
	}
	// The index has names and ids only: the time of the end is in the run.
	all := make([]agent.Run, 0, len(ids))
	for _, id := range ids {
		run, err := t.mustGet(id)
		if err != nil {
			return err
		}
		all = append(all, *run)
	}
	slices.SortFunc(all, func(a, b agent.Run) int { return a.Record.Ended.Compare(b.Record.Ended) })
	for _, run := range all[:containersCut] {
		if err := t.forget(run); err != nil {
			return err
		}
	}
	return nil
}
