package lease

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/store"
)

// Kind says what a box belongs to.
type Kind string

// The kinds.
const (
	OfRun   Kind = "run"   // Name is the run's id
	OfName  Kind = "name"  // of a namespace
	OfQueue Kind = "queue" // of a namespace; its messages are jobs
	// OfNamespace is shared by all of a namespace; Name is empty.
	OfNamespace Kind = "namespace"
)

// Of names a box.
type Of struct {
	Owner     uint32 `json:"owner"`
	Namespace string `json:"namespace,omitempty"` // below the owner
	Kind      Kind   `json:"kind"`
	Name      string `json:"name"`
}

// NameBox names the box of a name.
func NameBox(owner uint32, namespace, name string) Of {
	return Of{Owner: owner, Namespace: namespace, Kind: OfName, Name: name}
}

// RunBox names the box of a run.
func RunBox(owner uint32, id agent.ID) Of { return Of{Owner: owner, Kind: OfRun, Name: string(id)} }

// QueueBox names the box of a queue of jobs.
func QueueBox(owner uint32, namespace, name string) Of {
	return Of{Owner: owner, Namespace: namespace, Kind: OfQueue, Name: name}
}

// ID is the box's key: no two boxes have the same, and it tells nothing of the name.
func (o Of) ID() string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d\x00%s\x00%s\x00%s", o.Owner, o.Namespace, o.Kind, o.Name))
	return hex.EncodeToString(sum[:16])
}

// Box is what is kept of a box beside its messages.
type Box struct {
	Of
	Messages int    `json:"messages,omitempty"` // in it
	Dead     int    `json:"dead,omitempty"`     // letters
	Last     uint64 `json:"last,omitempty"`     // number of the newest message
	Held     int    `json:"held,omitempty"`     // messages that a run holds: jobs
	Done     int    `json:"done,omitempty"`     // jobs that are done and kept
	Finished uint64 `json:"finished,omitempty"` // number of the job that was done last, in that order
	// Expires is when the first of the messages expires; zero: none does.
	Expires time.Time `json:"expires,omitzero"`
}

// Usual is how many messages a box holds, and how many dead letters.
const Usual = 1024

// Boxes is the table of boxes.
var Boxes = store.Table[Box]{
	Bucket: "boxes", Noun: "mailbox",
	Key: func(b *Box) string { return b.ID() },
	Sound: func(b *Box) error {
		if b.Messages < 0 || b.Messages > Usual || b.Dead < 0 || b.Dead > Usual || b.Held < 0 || b.Held > b.Messages || b.Done < 0 || b.Done > doneMost {
			return errors.New("it counts what cannot be")
		}
		return nil
	},
	Indexes: []store.Index[Box]{{Bucket: boxesDue, Terms: expiryTerms}, {Bucket: boxesNamed, Terms: func(b *Box) []string { return some(b.nameTerm()) }}},
	Sums: []store.Sum[Box]{{Bucket: boxesOfOwner, Of: func(b *Box) (string, []int) {
		if b.Kind == OfQueue {
			return "", nil
		}
		return strconv.FormatUint(uint64(b.Owner), 10), []int{1, b.Messages, b.Dead}
	}}},
}

// The indexes and the sum of boxes. No call reads all boxes: there are as many as there were runs that got mail.
const (
	boxesDue     = "boxes_due"      // by the time at which the first message expires
	boxesNamed   = "boxes_named"    // by the owner and the name, of those that are not a run's
	boxesOfOwner = "boxes_of_owner" // the number of mailboxes, of messages and of dead letters
)

// expiryTerms has none where there is no place for what would become a dead letter.
func expiryTerms(b *Box) []string {
	if b.Expires.IsZero() || b.Dead >= Usual {
		return nil
	}
	return some(term(b.Expires))
}

// nameTerm has the start of the name. The boxes of runs, whose names are ids, have none.
func (o Of) nameTerm() string {
	if o.Kind == OfRun {
		return ""
	}
	term := fmt.Sprintf("%d/%s", o.Owner, o.Name)
	return term[:min(len(term), nameTermMost)]
}

const nameTermMost = 64 // bytes of a term of an index

// Named returns the boxes of an owner that have a name: of all namespaces and kinds, without those of runs.
func Named(tx *store.KernelTx, owner uint32, name string) ([]*Box, error) {
	all, err := Boxes.Indexed(tx, boxesNamed, Of{Owner: owner, Name: name}.nameTerm())
	return slices.DeleteFunc(all, func(b *Box) bool { return b.Name != name }), err
}

// Count is how many mailboxes an owner has, and how many messages and dead letters are in them. Queues are none.
type Count struct{ Boxes, Messages, Dead int }

// Counted returns the counts of the owners that have a box.
func Counted(tx *store.KernelTx) (map[uint32]Count, error) {
	sums, err := Boxes.Summed(tx, boxesOfOwner)
	all := map[uint32]Count{}
	for owner, n := range sums {
		uid, perr := strconv.ParseUint(owner, 10, 32)
		if err = cmp.Or(err, perr); perr == nil && len(n) == 3 {
			all[uint32(uid)] = Count{n[0], n[1], n[2]}
		}
	}
	return all, err
}

// get returns a box, which may be new.
func get(tx *store.KernelTx, of Of) (*Box, error) {
	b, err := Boxes.Get(tx, of.ID())
	if b == nil {
		b = &Box{Of: of}
	}
	return b, err
}

// Put puts a message into a box, and gives it its number and its id. A full box refuses it.
func Put(tx *store.KernelTx, of Of, m *Message) error {
	b, err := get(tx, of)
	if err == nil {
		err = b.expire(tx, m.Sent)
	}
	if err != nil {
		return err
	}
	if b.Messages >= Usual {
		return full(b)
	}
	b.Messages, b.Last = b.Messages+1, b.Last+1
	b.Expires = earliest(b.Expires, m.Expires)
	m.Box, m.Number = of.ID(), b.Last
	m.ID = key(m)
	return cmp.Or(refer(tx, of.Owner, m), Boxes.Put(tx, b), Messages.Put(tx, m))
}

// Full reports whether a box has no place at now.
func Full(tx *store.KernelTx, of Of, now time.Time) (bool, error) {
	b, err := Boxes.Get(tx, of.ID())
	return b != nil && b.Messages >= Usual && (b.Expires.IsZero() || now.Before(b.Expires)), err
}

func full(b *Box) error {
	if b.Kind == OfQueue {
		return api.Failure(api.CodeBusy, "wait until some are done", "%s has %d jobs, and is full", b.Name, b.Messages).By("", api.RuleMailbox)
	}
	return api.Failure(api.CodeBusy, "wait until its receiver has taken some", "%s has %d messages, and is full", b.Name, b.Messages).By("", api.RuleMailbox)
}

// earliest is the earlier of two times, of which zero is none.
func earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// expire makes dead letters of what has expired, as far as there is place for letters: the rest stays, is
// not received, and counts.
func (b *Box) expire(tx *store.KernelTx, now time.Time) error {
	if b.Expires.IsZero() || now.Before(b.Expires) {
		return nil
	}
	all, err := Messages.Below(tx, b.ID()+"/")
	b.Expires = time.Time{}
	for _, m := range all {
		if err != nil {
			return err
		}
		if !m.Expires.IsZero() && !now.Before(m.Expires) && b.Dead < Usual {
			b.Messages, b.Dead = b.Messages-1, b.Dead+1
			err = drop(tx, b.Owner, m)
			m.Dead, m.Died = "expired", now.UTC()
			err = cmp.Or(err, refer(tx, b.Owner, m), Messages.Delete(tx, key(m)), Letters.Put(tx, m))
			continue
		}
		b.Expires = earliest(b.Expires, m.Expires)
	}
	return err
}

// DueMost bounds the boxes of one Due, and so what expires in one transaction.
const DueMost = 64

// Due returns boxes with messages that have expired, at most DueMost: the first ones. Of these there are none
// left when Expire has been there.
func Due(tx *store.KernelTx, now time.Time) (due []Of, err error) {
	all, err := Boxes.Ordered(tx, boxesDue, "", term(now), DueMost)
	for _, b := range all {
		due = append(due, b.Of)
	}
	return due, err
}

// Expire makes dead letters of the messages of a box that have expired.
func Expire(tx *store.KernelTx, of Of, now time.Time) error {
	b, err := Boxes.Get(tx, of.ID())
	if err != nil || b == nil {
		return err
	}
	return cmp.Or(b.expire(tx, now), Boxes.Put(tx, b))
}

// Next returns messages of a box in their order, behind the message with the id after, at most so many.
// Those that have expired at now are left out.
func Next(tx *store.KernelTx, of Of, after string, most int, now time.Time) (all []*Message, err error) {
	box := of.ID()
	for len(all) < most {
		page, next, err := Messages.Page(tx, box+"/", after, most-len(all))
		if err != nil {
			return nil, err
		}
		for _, m := range page {
			if m.Expires.IsZero() || now.Before(m.Expires) {
				all = append(all, m)
			}
		}
		if after = next; next == "" {
			break
		}
	}
	return all, nil
}

// Take takes a message out of a box; nil: it is not there.
func Take(tx *store.KernelTx, of Of, id string) (*Message, error) {
	m, err := Find(tx, of, id)
	if err != nil || m == nil {
		return nil, err
	}
	b, err := get(tx, of)
	if err != nil {
		return nil, err
	}
	if b.Messages--; b.Messages == 0 {
		b.Expires = time.Time{}
	}
	return m, cmp.Or(drop(tx, of.Owner, m), Messages.Delete(tx, id), Boxes.Put(tx, b))
}

// Find returns a message of a box by its id; nil: it is not there.
func Find(tx *store.KernelTx, of Of, id string) (*Message, error) {
	if len(id) < 33 || id[:33] != of.ID()+"/" {
		return nil, nil
	}
	return Messages.Get(tx, id)
}

// BoxOf returns the box in which a message with an id is, if there is one; nil: there is no such box. It is asked
// before the message is read: that takes the longer the larger it is, which would show others that it is there.
func BoxOf(tx *store.KernelTx, id string) (*Box, error) {
	if !IsID(id) {
		return nil, nil
	}
	return Boxes.Get(tx, id[:32])
}

// Bury makes a message that was taken out of a box a dead letter of it, and says why.
func Bury(tx *store.KernelTx, of Of, m *Message, why string, now time.Time) error {
	b, err := get(tx, of)
	if err != nil {
		return err
	}
	if b.Dead >= Usual {
		return api.Failure(api.CodeBusy, "requeue or remove some", "%s has %d dead letters", of.Name, b.Dead).By("", api.RuleMailbox)
	}
	b.Dead++
	m.Dead, m.Died = why, now.UTC()
	return cmp.Or(refer(tx, of.Owner, m), Letters.Put(tx, m), Boxes.Put(tx, b))
}

// Requeue puts a dead letter back into its box, at its place. It expires no more.
func Requeue(tx *store.KernelTx, b *Box, m *Message) error {
	if b.Messages >= Usual {
		return full(b)
	}
	b.Messages++
	err := Discard(tx, b, m)
	m.Dead, m.Died, m.Expires = "", time.Time{}, time.Time{}
	return cmp.Or(err, refer(tx, b.Owner, m), Messages.Put(tx, m))
}

// Discard removes a dead letter.
func Discard(tx *store.KernelTx, b *Box, m *Message) error {
	b.Dead--
	return cmp.Or(drop(tx, b.Owner, m), Letters.Delete(tx, key(m)), Boxes.Put(tx, b))
}

// Wakes reports whether a box has a message that starts a run, and has not expired.
func Wakes(tx *store.KernelTx, of Of, now time.Time) (bool, error) {
	all, err := Messages.Below(tx, of.ID()+"/")
	return slices.ContainsFunc(all, func(m *Message) bool { return m.Wake && (m.Expires.IsZero() || now.Before(m.Expires)) }), err
}

// Forget removes a box with all that is in it.
func Forget(tx *store.KernelTx, of Of) error {
	err := Boxes.Delete(tx, of.ID())
	for _, table := range all {
		in, lerr := table.Below(tx, of.ID()+"/")
		err = cmp.Or(err, lerr)
		for _, m := range in {
			err = cmp.Or(err, drop(tx, of.Owner, m), table.Delete(tx, table.Key(m)))
		}
	}
	return err
}
