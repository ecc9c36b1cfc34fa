package store

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"clove.run/clove/agent"
)

// maxOccurrences bounds the bucket: who comes back after more than so many
// reads the runs anew.
const maxOccurrences = 8192

// whatOf names the state table's events as occurrences.
var whatOf = map[agent.Event]agent.RunEventKind{
	agent.EventAdmitted: agent.RunStarting,
	agent.EventStarted:  agent.RunStarted,
	agent.EventRecorded: agent.RunEnded,
	agent.EventLost:     agent.RunLost,
	agent.EventRequeued: agent.RunRequeued,
}

// note adds an occurrence in the transaction of what it tells, and drops the
// oldest one beyond the bound.
func (t *tables) note(run agent.Run, what agent.RunEventKind, detail string) error {
	// gofail: var storeNoted string
	// lastNoted = string(what)
	// if err := failpoint(storeNoted, lastNoted); err != nil { return err }

	number, err := t.occurrences.NextSequence()
	if err != nil {
		return err
	}
	o := agent.RunEvent{Sequence: number, Time: time.Now().UTC(), Kind: what, ID: run.Spec.ID, Name: run.Spec.Name,
		Owner: run.Owner, State: run.State, Detail: detail}
	ends := what == agent.RunEnded || what == agent.RunLost
	if run.Record != nil && (ends || what == agent.ContainerEnded) {
		code := run.Record.ExitCode
		o.Status, o.ExitCode = run.Record.Status, &code
	}
	if run.Record != nil && ends {
		o.Sum = agent.SumOf(*run.Record)
	}
	value, err := json.Marshal(o)
	if err != nil {
		return err
	}
	if number > maxOccurrences {
		err = t.occurrences.Delete(numberKey(number - maxOccurrences))
	}
	return errors.Join(err, t.occurrences.Put(numberKey(number), value))
}

// Occurrences returns what happened after the one with this number, at most
// limit of them, oldest first, and the number of the last that there is. A gap
// says that those in between have been dropped: the first one returned is then
// not after+1.
func (s *Store) Occurrences(after uint64, limit int) (found []agent.RunEvent, last uint64, err error) {
	var keys, values [][]byte
	err = s.view(func(t *tables) error {
		last = t.occurrences.Sequence()
		cursor := t.occurrences.Cursor()
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
			return fmt.Errorf("%w: occurrence %x: %w", errDamaged, keys[i], err)
		}
		return nil
	})
	return found, last, explain(s.path, err)
}

func numberKey(number uint64) []byte { return binary.BigEndian.AppendUint64(nil, number) }

// everyOccurrence: numbers are those of their keys, and none is in the future.
func (a *audit) everyOccurrence() {
	last := a.occurrences.Sequence()
	for key, value := range each(a.occurrences.Cursor()) {
		var o agent.RunEvent
		if err := json.Unmarshal(value, &o); err != nil || len(key) != 8 || o.Sequence != binary.BigEndian.Uint64(key) || o.Sequence > last {
			a.problem("occurrence %x: it says %d of %d (%v)", key, o.Sequence, last, err)
		}
	}
}
