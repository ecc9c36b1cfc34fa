package events

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/store"
)

// kept is how many events of a run are kept.
const kept = 256

// Row is an event of an agent's.
type Row struct {
	Run    agent.ID `json:"run"`
	Slot   string   `json:"slot"` // the events of a run have kept slots, and take turns
	Number uint64   `json:"number"`
	// The following are empty in the row that has the number of the newest event.
	ID        string          `json:"id,omitempty"` // of the call that appended it
	Kind      string          `json:"kind,omitempty"`
	Body      json.RawMessage `json:"body,omitempty"`
	Causation string          `json:"causation,omitempty"`
	Time      time.Time       `json:"time,omitzero"`
}

// byID is the index of events by their ids.
const byID = "agent_event_ids"

// newest is the slot of the row with the number of the newest event.
const newest = "newest"

// Rows is the table of events.
var Rows = store.Table[Row]{
	Bucket: "agent_events", Noun: "event", OfRun: true,
	Key: func(r *Row) string { return store.RunKey(r.Run, r.Slot) },
	Sound: func(r *Row) error {
		if r.Slot != newest && (!agent.ID(r.ID).Valid() || checkKind(r.Kind) != nil || r.Slot != slot(r.Number)) {
			return errors.New("it is no event of an agent's")
		}
		return nil
	},
	Indexes: []store.Index[Row]{{Bucket: byID, Terms: func(r *Row) []string {
		if r.ID == "" {
			return nil
		}
		return []string{r.ID}
	}}},
}

func slot(number uint64) string { return fmt.Sprintf("%02x", number%kept) }

// add gives an event the next number of its run, and the place of the oldest one.
func add(tx *store.KernelTx, r *Row) error {
	head, err := Rows.Get(tx, store.RunKey(r.Run, newest))
	if err != nil {
		return err
	}
	if head == nil {
		head = &Row{Run: r.Run, Slot: newest}
	}
	head.Number++
	r.Number, r.Slot = head.Number, slot(head.Number)
	if err := Rows.Put(tx, head); err != nil {
		return err
	}
	return Rows.Put(tx, r)
}

// find returns an event by its id, if its run is one that sees chooses; nil: there is none, or it is not kept. An event
// of another run is not read: that would take longer than to find none.
func find(tx *store.KernelTx, id string, sees func(agent.ID) bool) (*Row, error) {
	if !agent.ID(id).Valid() {
		return nil, nil
	}
	keys, err := Rows.Keys(tx, byID, id)
	if err != nil || len(keys) == 0 {
		return nil, err
	}
	if run, _, _ := strings.Cut(keys[0], "/"); !sees(agent.ID(run)) {
		return nil, nil
	}
	return Rows.Get(tx, keys[0])
}

// kindPrefix begins the kinds of agents' events: no event of clove's own has it.
const kindPrefix = "agent."

// kindMost bounds a kind, in bytes.
const kindMost = 64

// checkKind refuses a kind that is not the agents' own.
func checkKind(kind string) error {
	name, own := strings.CutPrefix(kind, kindPrefix)
	strange := func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '_' || r == '.' || r == '-')
	}
	if !own || name == "" || len(kind) > kindMost || strings.ContainsFunc(name, strange) {
		return api.Failure(api.CodeParams, "write for example agent.step: at most 64 lower-case letters, digits and _.- behind agent.", "%.64q is no kind of an agent's events", kind)
	}
	return nil
}
