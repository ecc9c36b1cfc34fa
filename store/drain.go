package store

// keyDrained is there while nothing is to be started.
var keyDrained = []byte("drained")

// SetDrained notes whether cloved is drained for maintenance, which outlives it.
func (s *Store) SetDrained(on bool) error {
	return s.update(func(t *tables) error {
		meta := t.tx.Bucket(bucketMeta)
		if on {
			return meta.Put(keyDrained, []byte("yes"))
		}
		return meta.Delete(keyDrained)
	})
}

// Drained tells whether cloved is drained.
func (s *Store) Drained() (drained bool, err error) {
	err = s.view(func(t *tables) error {
		meta := t.tx.Bucket(bucketMeta)
		drained = meta.Get(keyDrained) != nil
		return nil
	})
	return drained, err
}
