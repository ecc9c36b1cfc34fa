package store

import (
	"encoding/json"

	"go.etcd.io/bbolt"

	"clove.run/clove/agent"
)

// Overview is the file as it lies on the disk.
type Overview struct {
	Path     string           `json:"path"`
	Bytes    int64            `json:"bytes"`
	Schema   int              `json:"schema"`   // of the file
	Newest   int              `json:"newest"`   // that this build knows
	Revision int              `json:"revision"` // number of the last transaction that wrote (Revision)
	PageSize int              `json:"page_size"`
	Buckets  []BucketOverview `json:"buckets"`
}

// BucketOverview is one bucket.
type BucketOverview struct {
	Name     string `json:"name" col:"BUCKET"`
	Keys     int    `json:"keys" col:"KEYS"`
	Bytes    int    `json:"bytes" col:"BYTES"`          // in use, in leaves and branches
	Sequence uint64 `json:"sequence" col:"LAST NUMBER"` // the last number that was given; 0: it gives none
}

// Overview reads every bucket, also one that is not of the schema.
func (s *Store) Overview() (Overview, error) {
	o := Overview{Path: s.path, Newest: s.format.newest()}
	err := s.view(func(t *tables) (err error) {
		o.Bytes, o.Revision, o.PageSize = t.tx.Size(), t.tx.ID(), s.db.Info().PageSize
		if o.Schema, err = s.format.schemaOf(t.tx); err != nil {
			return err
		}
		return t.tx.ForEach(func(name []byte, b *bbolt.Bucket) error {
			stats := b.Stats()
			o.Buckets = append(o.Buckets, BucketOverview{string(name), stats.KeyN, stats.LeafInuse + stats.BranchInuse + stats.InlineBucketInuse, b.Sequence()})
			return nil
		})
	})
	return o, err
}

// Raw returns the stored value of the run that ref means, byte for byte: a
// field that this build does not know is there too.
func (s *Store) Raw(ref string) (value json.RawMessage, err error) {
	err = s.view(func(t *tables) error {
		id, err := t.resolve(ref)
		if err != nil {
			return err
		}
		stored := t.runs.Get([]byte(id))
		if stored == nil {
			return broken("name %q belongs to run %s, which does not exist", ref, id)
		}
		value = append(value, stored...) // a copy: stored is memory of the page, valid until the transaction ends
		return nil
	})
	return value, err
}

// History returns the newest events, at most limit, oldest first.
func (s *Store) History(limit int) ([]agent.RunEvent, error) {
	// Asked for no events, only for the newest one's number. No event has a number so high;
	// one higher still would overflow in Events.
	_, last, err := s.Events(^uint64(0)-1, 0)
	if err != nil {
		return nil, err
	}
	found, _, err := s.Events(last-min(last, uint64(limit)), limit)
	return found, err
}
