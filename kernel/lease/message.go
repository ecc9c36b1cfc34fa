package lease

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"clove.run/clove/api"
	"clove.run/clove/kernel/blob"
	"clove.run/clove/store"
)

// Message is one message.
type Message struct {
	Box      string `json:"box"`
	Number   uint64 `json:"number"`
	Priority int    `json:"priority,omitempty"` // 0 to PriorityMost
	api.Mail
	// Via is the name by which it came; First its id before it was moved from another box.
	Via   string `json:"via,omitempty"`
	First string `json:"first,omitempty"`
	Wake  bool   `json:"wake,omitempty"` // it starts a run for the name Via
	// Dead says why it is a dead letter; empty: it is none.
	Dead string    `json:"dead,omitempty"`
	Died time.Time `json:"died,omitzero"`
	Work *Work     `json:"work,omitempty"` // of a job; nil: it is mail
}

// PriorityMost is the highest priority.
const PriorityMost = 9

// place is the part of a message's key behind its box: higher priorities come first.
func (m *Message) place() string { return fmt.Sprintf("%d%016x", PriorityMost-m.Priority, m.Number) }

func key(m *Message) string { return m.Box + "/" + m.place() }

// idLength is that of an id: a box's, a slash, a priority and a number.
const idLength = 32 + 1 + 1 + 16

// IsID reports whether a text has the form of a message's id.
func IsID(text string) bool { return len(text) == idLength && text[32] == '/' }

func sound(m *Message) error {
	if m.Number == 0 || m.Priority < 0 || m.Priority > PriorityMost || len(m.Box) != 32 {
		return errors.New("it has no place in a mailbox")
	}
	return nil
}

// Messages and Letters are the tables of messages and of dead letters.
var (
	Messages = store.Table[Message]{Bucket: "messages", Noun: "message", Key: key, Sound: sound, Indexes: []store.Index[Message]{
		{Bucket: answers, Terms: func(m *Message) []string { return some(m.Answers) }},
		{Bucket: ready, Terms: readyTerms}, {Bucket: due, Terms: dueTerms}, {Bucket: byHolder, Terms: holderTerms}}}
	Letters = store.Table[Message]{Bucket: "dead_letters", Noun: "dead letter", Key: key, Sound: sound}
)

// some is a list of one term, or of none.
func some(term string) []string {
	if term == "" {
		return nil
	}
	return []string{term}
}

// Holder is the box as a holder of blobs: those of its messages.
func (o Of) Holder() string { return "box/" + o.ID() }

// Holder is the holder of a message's blobs: its box, or its box's dead letters; of a job it is the job itself, in
// whatever state, so that its holder has a right to these and to no others of the queue.
func (m *Message) Holder() string {
	switch {
	case m.Work != nil:
		return "job/" + key(m)
	case m.Dead != "":
		return "dead/" + m.Box
	}
	return "box/" + m.Box
}

// refer notes that a message refers to its blobs.
func refer(tx *store.KernelTx, owner uint32, m *Message) error {
	return cmp.Or(blob.Refer(tx, owner, m.Holder(), m.Blob), blob.Refer(tx, owner, m.Holder(), m.result()))
}

// drop takes the references of a message back.
func drop(tx *store.KernelTx, owner uint32, m *Message) error {
	return cmp.Or(blob.Drop(tx, owner, m.Holder(), m.Blob), blob.Drop(tx, owner, m.Holder(), m.result()))
}

// result is the blob that is the result of a job; nil: it has none.
func (m *Message) result() *api.Blob {
	if m.Work == nil {
		return nil
	}
	return m.Work.ResultBlob
}

// all are the tables of messages, in whatever state.
var all = []store.Table[Message]{Messages, Letters, Finished}

// Tables are those of the package.
func Tables() []store.Declared { return []store.Declared{Boxes, Messages, Letters, Finished} }

// answers is the index of answers by what they answer.
const answers = "mail_answers"

// Asked is the id by which its sender knows a message.
func (m *Message) Asked() string { return cmp.Or(m.First, m.ID) }

// Answer returns the message of a box that answers another; nil: none does.
func Answer(tx *store.KernelTx, of Of, id string) (*Message, error) {
	found, err := Messages.Indexed(tx, answers, id)
	for _, m := range found {
		if m.Box == of.ID() {
			return m, err
		}
	}
	return nil, err
}
