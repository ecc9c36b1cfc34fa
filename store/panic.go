package store

import (
	"encoding/json"
	"time"

	"clove.run/clove/agent"
)

// keyPanic exists after clove panic, until it is cleared. Its value is a Panic as JSON.
var keyPanic = []byte("panic")

// Panic is why nothing may start.
type Panic struct {
	Reason string    `json:"reason"`
	Time   time.Time `json:"time"`
}

// SetPanic stores that nothing may start; nil lets runs start again. It survives a restart
// of cloved and of the host.
func (s *Store) SetPanic(p *Panic) error {
	return s.update(func(t *tables) error {
		meta := t.tx.Bucket(bucketMeta)
		if p == nil {
			return meta.Delete(keyPanic)
		}
		text, err := json.Marshal(p)
		if err != nil {
			return err
		}
		return meta.Put(keyPanic, text)
	})
}

// Panic returns why nothing may start; nil: everything may.
func (s *Store) Panic() (p *Panic, err error) {
	err = s.view(func(t *tables) (err error) { p, err = t.panic(); return err })
	return p, err
}

func (t *tables) panic() (*Panic, error) {
	text := t.tx.Bucket(bucketMeta).Get(keyPanic)
	if text == nil {
		return nil, nil
	}
	p := &Panic{}
	return p, json.Unmarshal(text, p)
}

// mayStart refuses a start while a panic stands.
func (t *tables) mayStart() error {
	p, err := t.panic()
	if err != nil || p == nil {
		return err
	}
	return &agent.Error{Kind: agent.KindConflict, Step: "panic", Rule: agent.RulePanic, Message: "nothing starts: " + p.Reason,
		Hint: "`clove panic --clear` lets runs start again"}
}
