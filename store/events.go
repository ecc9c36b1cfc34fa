package store

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"clove.run/clove/agent"
)

// maxEvents bounds the bucket. A reader that missed more than so many events reads all runs
// again. One event goes for each that comes (note), so no transaction has to remove many.
const maxEvents = 8192

// whatOf is the name in the log of events for each event of the state table.
var whatOf = map[agent.Event]agent.RunEventKind{
	agent.EventAdmitted: agent.RunStarting,
	agent.EventStarted:  agent.RunStarted,
	agent.EventRecorded: agent.RunEnded,
	agent.EventLost:     agent.RunLost,
	agent.EventRequeued: agent.RunRequeued,
}

// note logs an event in the transaction that changes the run, so that neither is
// stored without the other, and removes the oldest event beyond the bound.
func (t *tables) note(run agent.Run, what agent.RunEventKind, detail string) error {
	// gofail: var storeNoted string
	// lastNoted = string(what)
	// if err := failpoint(storeNoted, lastNoted); err != nil { return err }

	o := agent.RunEvent{Time: time.Now().UTC(), Kind: what, Detail: detail}
	ends := what == agent.RunEnded || what == agent.RunLost
	if run.Record != nil && ends {
		o.Detail = cmp.Or(detail, run.Record.EndedWith(), run.Record.Idled())
	}
	if run.Record != nil && (ends || what == agent.ContainerEnded) {
		code := run.Record.ExitCode
		o.Status, o.ExitCode = run.Record.Status, &code
	}
	switch cause := run.EndOf(); {
	case what == agent.RunQueued:
		o.Causation = string(run.Parent)
	case what == agent.RunStopRequested:
		o.Causation, o.Correlation = run.Queue.Cause, run.Queue.Cause
	case ends && cause == string(run.Parent):
		o.Causation = cause
	case ends:
		o.Causation, o.Correlation = cause, cause
	}
	// The sum is for cloved's counters. They count from events, because with --rm the
	// record goes in the same transaction.
	if run.Record != nil && ends {
		o.Sum = agent.SumOf(*run.Record)
		// Before the end, so that a client that waits for the end has seen it.
		if shadow := run.Record.Shadow; shadow != nil {
			if err := t.putEvent(run, agent.RunEvent{Time: o.Time, Kind: agent.RunShadowed, Detail: shadow.Summary()}); err != nil {
				return err
			}
		}
	}
	return t.putEvent(run, o)
}

// putEvent gives an event of a run the next number.
func (t *tables) putEvent(run agent.Run, o agent.RunEvent) error {
	number, err := t.events.NextSequence()
	if err != nil {
		return err
	}
	o.Sequence, o.ID, o.Name, o.Owner, o.Parent, o.State = number, run.Spec.ID, run.Spec.Name, run.Owner, run.Parent, run.State
	value, err := json.Marshal(o)
	if err != nil {
		return err
	}
	// Numbers have no gap, so the oldest event is the one with this key.
	if number > maxEvents {
		err = t.events.Delete(numberKey(number - maxEvents))
	}
	return errors.Join(err, t.events.Put(numberKey(number), value))
}

// Note logs events that changed no run, such as decisions about grants, in one transaction.
// Of each only the time, the kind, the detail and the causes are read besides the run's id;
// those of runs that are gone are left out.
func (s *Store) Note(events []agent.RunEvent) error {
	return s.update(func(t *tables) error {
		for _, o := range events {
			run, err := t.get([]byte(o.ID))
			if err != nil {
				return err
			}
			if run == nil {
				continue
			}
			o.Time = o.Time.UTC()
			if err := t.putEvent(*run, o); err != nil {
				return err
			}
		}
		return nil
	})
}

// Events returns the events with a higher number than after, at most limit of
// them, oldest first, and the number of the newest event. If the first one
// returned is not after+1, the events in between have been removed.
func (s *Store) Events(after uint64, limit int) (found []agent.RunEvent, last uint64, err error) {
	var keys, values [][]byte
	err = s.view(func(t *tables) error {
		last = t.events.Sequence()
		// Copied here and decoded behind the transaction, for the reason in List.
		cursor := t.events.Cursor()
		for key, value := cursor.Seek(numberKey(after + 1)); key != nil && len(keys) < limit; key, value = cursor.Next() {
			keys, values = append(keys, bytes.Clone(key)), append(values, bytes.Clone(value))
		}
		return nil
	})
	if err != nil || len(keys) == 0 {
		return nil, last, err
	}
	found = make([]agent.RunEvent, len(keys))
	err = onAllCPUs(len(keys), func(i int) error {
		if err := json.Unmarshal(values[i], &found[i]); err != nil {
			return fmt.Errorf("%w: event %x: %w", errDamaged, keys[i], err)
		}
		return nil
	})
	return found, last, explain(s.path, err)
}

// numberKey is big endian, so that the order of the keys is that of the numbers.
func numberKey(number uint64) []byte { return binary.BigEndian.AppendUint64(nil, number) }

// everyEvent checks that each event has the number of its key, and that no number
// is above the bucket's sequence.
func (a *audit) everyEvent() {
	last := a.events.Sequence()
	for key, value := range each(a.events.Cursor()) {
		var o agent.RunEvent
		if err := json.Unmarshal(value, &o); err != nil || len(key) != 8 || o.Sequence != binary.BigEndian.Uint64(key) || o.Sequence > last {
			a.problem("event %x: it says %d of %d (%v)", key, o.Sequence, last, err)
		}
	}
}
