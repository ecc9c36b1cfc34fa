package lease

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/kernel/blob"
	"clove.run/clove/store"
)

// Work is what a job has beside its message. A job is in one of these states: it waits for its time (Due), or
// for a run (ready), or a run holds it (Holder), or it is a dead letter, or it is done. It comes back from its
// holder when that returns it, ends, or lets the lease run out.
type Work struct {
	Due      time.Time     `json:"due,omitzero"`      // nobody takes it before; zero: it is ready
	Deadline time.Time     `json:"deadline,omitzero"` // then it is dead, also while it is held; zero: none
	Attempts int           `json:"attempts,omitempty"`
	Most     int           `json:"most"`       // attempts
	Backoff  time.Duration `json:"backoff_ns"` // before the second attempt; doubled before each one after
	Holder   agent.ID      `json:"holder,omitempty"`
	Since    time.Time     `json:"since,omitzero"` // when Holder took it
	Until    time.Time     `json:"until,omitzero"` // of Holder's lease; zero: it lasts as long as that run
	// Why the last attempt failed.
	Why    string          `json:"why,omitempty"`
	Output string          `json:"output,omitempty"` // the end of what the last run wrote that clove has started for it
	Result json.RawMessage `json:"result,omitempty"` // of a job that is done
	// ResultBlob is its result, or beside it, kept as a blob.
	ResultBlob *api.Blob `json:"result_blob,omitempty"`
	Order      uint64    `json:"order,omitempty"` // among those that are done
}

const (
	doneMost   = 256 // jobs of a queue that are done and kept
	backoffMax = time.Hour
	// buryAgain is how long a job without attempts left waits while there is no place for dead letters.
	buryAgain = time.Minute
)

// The indexes of jobs.
const (
	ready    = "jobs_ready"     // by the box: those that a run may take
	due      = "jobs_due"       // by the time at which something becomes of them without a call
	byHolder = "jobs_by_holder" // by the run
	byOrder  = "jobs_by_order"  // of done ones: by the box and the order
)

// Finished is the table of jobs that are done: the last of each box.
var Finished = store.Table[Message]{Bucket: "jobs_done", Noun: "job that is done", Key: key, Sound: sound, Indexes: []store.Index[Message]{
	{Bucket: byOrder, Terms: func(m *Message) []string { return some(orderTerm(m)) }}}}

func orderTerm(m *Message) string {
	if m.Work == nil {
		return ""
	}
	return fmt.Sprintf("%s/%016x", m.Box, m.Work.Order)
}

func (w *Work) isReady() bool {
	return w != nil && w.Holder == "" && w.Due.IsZero() && w.Attempts < w.Most
}

func readyTerms(m *Message) []string {
	if !m.Work.isReady() {
		return nil
	}
	return some(m.Box)
}

func holderTerms(m *Message) []string {
	if m.Work == nil {
		return nil
	}
	return some(string(m.Work.Holder))
}

// Next is when something becomes of a job without a call; zero: nothing does.
func (w *Work) Next() time.Time {
	at := w.Due
	if w.Holder != "" {
		at = w.Until
	}
	return earliest(at, w.Deadline)
}

// term is a time as a term that sorts as the times do.
func term(at time.Time) string { return fmt.Sprintf("%016x", max(0, at.UnixNano())) }

func dueTerms(m *Message) []string {
	if m.Work == nil || m.Work.Next().IsZero() {
		return nil
	}
	return some(term(m.Work.Next()))
}

// update stores a job that was changed, with its box where the number of the held ones changed.
func update(tx *store.KernelTx, m *Message, held int) error {
	if held != 0 {
		b, err := Boxes.Get(tx, m.Box)
		if err != nil || b == nil {
			return cmp.Or(err, fmt.Errorf("the job %s has no box", m.ID))
		}
		b.Held += held
		if err := Boxes.Put(tx, b); err != nil {
			return err
		}
	}
	return Messages.Put(tx, m)
}

// readyAtOnce bounds the jobs that one look passes because their deadline is over.
const readyAtOnce = 16

// Ready returns the job of a box that is the next to be taken; nil: there is none.
func Ready(tx *store.KernelTx, of Of, now time.Time) (*Message, error) {
	found, err := Messages.Ordered(tx, ready, of.ID(), "", readyAtOnce)
	for _, m := range found {
		if !m.Work.over(now) { // else Ripen has not been here yet
			return m, err
		}
	}
	return nil, err
}

// Open is how many jobs of a box are ready, and how many wait for their time.
func Open(tx *store.KernelTx, b *Box) (waiting, delayed int, err error) {
	waiting, err = Messages.Count(tx, ready, b.ID())
	return waiting, b.Messages - b.Held - waiting, err
}

// Hold gives a ready job to a run, with a lease until a time; zero: as long as the run lasts.
func Hold(tx *store.KernelTx, m *Message, run agent.ID, until, now time.Time) error {
	m.Work.Holder, m.Work.Since, m.Work.Until = run, now.UTC(), until
	m.Work.Attempts++
	return update(tx, m, 1)
}

// Holds reports whether a run holds a job, which its lease or its deadline may have ended.
func (m *Message) Holds(run agent.ID, now time.Time) bool {
	w := m.Work
	return w != nil && run != "" && w.Holder == run && (w.Until.IsZero() || now.Before(w.Until)) && !w.over(now)
}

// HeldBy are the jobs that a run holds.
func HeldBy(tx *store.KernelTx, run agent.ID) ([]*Message, error) {
	return Messages.Indexed(tx, byHolder, string(run))
}

// Extend sets the end of a lease.
func Extend(tx *store.KernelTx, m *Message, until time.Time) error {
	m.Work.Until = until
	return Messages.Put(tx, m)
}

// Finish takes a held job out of its box, and keeps it among the last ones that are done, with its result and the
// blob that is one; nil: it has none.
func Finish(tx *store.KernelTx, m *Message, result json.RawMessage, content *api.Blob, now time.Time) error {
	b, err := Boxes.Get(tx, m.Box)
	if err != nil || b == nil {
		return err
	}
	b.Messages, b.Held, b.Finished = b.Messages-1, b.Held+m.Work.free(), b.Finished+1
	if b.Done++; b.Done > doneMost {
		oldest, err := Finished.Ordered(tx, byOrder, m.Box, "", b.Done-doneMost)
		for _, old := range oldest {
			err, b.Done = cmp.Or(err, drop(tx, b.Owner, old), Finished.Delete(tx, key(old))), b.Done-1
		}
		if err != nil {
			return err
		}
	}
	m.Work.Order, m.Work.Result, m.Work.ResultBlob, m.Died = b.Finished, result, content, now.UTC()
	return cmp.Or(blob.Refer(tx, b.Owner, m.Holder(), content), Messages.Delete(tx, key(m)), Finished.Put(tx, m), Boxes.Put(tx, b))
}

// free takes a job from its holder, and returns the change of the number of held ones.
func (w *Work) free() (held int) {
	if w.Holder != "" {
		held = -1
	}
	w.Holder, w.Since, w.Until = "", time.Time{}, time.Time{}
	return held
}

// Return takes a job from its holder: it is tried again after a pause, or it is dead.
func Return(tx *store.KernelTx, m *Message, why string, now time.Time) error {
	w := m.Work
	if w.Attempts >= w.Most {
		return Kill(tx, m, why, now)
	}
	w.Why, w.Due = why, now.Add(w.pause()).UTC()
	return update(tx, m, w.free())
}

// Undo takes a job from a holder that could not begin with it, until a time. The attempt does not count.
func Undo(tx *store.KernelTx, m *Message, why string, due time.Time) error {
	w := m.Work
	w.Attempts, w.Due, w.Why = max(0, w.Attempts-1), due, why
	return update(tx, m, w.free())
}

// pause is the time before the next attempt.
func (w *Work) pause() time.Duration {
	pause := w.Backoff
	for i := 1; i < w.Attempts && pause < backoffMax; i++ {
		pause *= 2
	}
	return min(pause, backoffMax)
}

// Soon makes a delayed job ready. One without attempts left, for which there is no place for a dead letter, has
// all of them again.
func Soon(tx *store.KernelTx, m *Message) error {
	if m.Work.Attempts >= m.Work.Most {
		m.Work.Attempts = 0
	}
	m.Work.Due = time.Time{}
	return Messages.Put(tx, m)
}

// Kill makes a job a dead letter. Where there is no place for one it stays, and no run gets it.
func Kill(tx *store.KernelTx, m *Message, why string, now time.Time) error {
	b, err := Boxes.Get(tx, m.Box)
	if err != nil || b == nil {
		return err
	}
	w := m.Work
	b.Held += w.free()
	if w.Why = why; b.Dead >= Usual {
		w.Attempts, w.Due, w.Deadline = w.Most, now.Add(buryAgain).UTC(), time.Time{}
		return cmp.Or(Boxes.Put(tx, b), Messages.Put(tx, m))
	}
	b.Messages, b.Dead = b.Messages-1, b.Dead+1
	m.Dead, m.Died = why, now.UTC()
	return cmp.Or(Messages.Delete(tx, key(m)), Letters.Put(tx, m), Boxes.Put(tx, b))
}

// Again makes a dead job one that is tried from the beginning, without its deadline.
func Again(tx *store.KernelTx, b *Box, m *Message) error {
	m.Work.Attempts, m.Work.Due, m.Work.Deadline = 0, time.Time{}, time.Time{}
	return Requeue(tx, b, m)
}

// Cancel removes a job that is not dead.
func Cancel(tx *store.KernelTx, b *Box, m *Message) error {
	b.Messages--
	if m.Work.Holder != "" {
		b.Held--
	}
	return cmp.Or(drop(tx, b.Owner, m), Messages.Delete(tx, key(m)), Boxes.Put(tx, b))
}

// Free returns the jobs that a run holds since before a moment, zero: all; and the boxes of these.
func Free(tx *store.KernelTx, run agent.ID, until time.Time, why string, now time.Time) (boxes []string, err error) {
	held, err := HeldBy(tx, run)
	for _, m := range held {
		if err == nil && (until.IsZero() || !m.Work.Since.After(until)) {
			boxes, err = append(boxes, m.Box), Return(tx, m, why, now)
		}
	}
	return boxes, err
}

// Holders are the jobs that a run holds, as holders of blobs.
func Holders(tx *store.KernelTx, run agent.ID, now time.Time) (holders []string, err error) {
	held, err := HeldBy(tx, run)
	for _, m := range held {
		if m.Blob != nil && m.Holds(run, now) {
			holders = append(holders, m.Holder())
		}
	}
	return holders, err
}

// ripenMost bounds the jobs of one Ripen.
const ripenMost = 256

// IsDue reports whether Ripen has something to do, and else when it will have; zero: never.
func IsDue(tx *store.KernelTx, now time.Time) (is bool, next time.Time, err error) {
	first, err := Messages.Ordered(tx, due, "", "", 1)
	if err != nil || len(first) == 0 {
		return false, next, err
	}
	next = first[0].Work.Next()
	return !now.Before(next), next, nil
}

// Ripen does what time does to jobs: those whose time has come are ready, those whose lease has run out come
// back, and those whose deadline has passed are dead. It returns the boxes in which something has changed.
func Ripen(tx *store.KernelTx, now time.Time) (boxes []string, err error) {
	all, err := Messages.Ordered(tx, due, "", term(now), ripenMost)
	for _, m := range all {
		if err == nil {
			err = ripen(tx, m, now)
		}
		if !slices.Contains(boxes, m.Box) {
			boxes = append(boxes, m.Box)
		}
	}
	return boxes, err
}

func ripen(tx *store.KernelTx, m *Message, now time.Time) error {
	w := m.Work
	switch {
	case w.over(now):
		return Kill(tx, m, cmp.Or(w.deadWhy(), "the deadline has passed"), now)
	case w.Holder != "":
		return Return(tx, m, "the lease ran out", now)
	case w.Attempts >= w.Most:
		return Kill(tx, m, w.Why, now)
	}
	w.Due = time.Time{}
	return Messages.Put(tx, m)
}

// over reports whether the deadline has passed.
func (w *Work) over(now time.Time) bool { return !w.Deadline.IsZero() && !now.Before(w.Deadline) }

// deadWhy says why a job is dead whose deadline has passed behind a failure.
func (w *Work) deadWhy() string {
	if w.Why == "" {
		return ""
	}
	return "the deadline has passed; before that: " + w.Why
}

// Job returns a job by its id, in whatever state, and its box, of those boxes that may be seen; nil: there is none.
func Job(tx *store.KernelTx, id string, may func(*Box) bool) (m *Message, b *Box, err error) {
	b, err = BoxOf(tx, id)
	if err != nil || b == nil || !may(b) {
		return nil, nil, err
	}
	for _, table := range all {
		if m, err = table.Get(tx, id); err != nil || m != nil {
			break
		}
	}
	if m == nil || m.Work == nil {
		return nil, nil, err
	}
	return m, b, err
}
