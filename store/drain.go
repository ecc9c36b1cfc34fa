package store

// keyDrained exists while cloved is drained. Only whether it is there counts, not its
// value.
var keyDrained = []byte("drained")

// SetDrained stores whether cloved is drained for maintenance: a drain survives a restart
// of cloved and of the host. It logs no event, because no run has changed.
func (s *Store) SetDrained(on bool) error {
	return s.update(func(t *tables) error {
		meta := t.tx.Bucket(bucketMeta)
		if on {
			return meta.Put(keyDrained, []byte("yes"))
		}
		return meta.Delete(keyDrained)
	})
}

// Drained reports whether cloved is drained.
func (s *Store) Drained() (drained bool, err error) {
	err = s.view(func(t *tables) error {
		meta := t.tx.Bucket(bucketMeta)
		drained = meta.Get(keyDrained) != nil
		return nil
	})
	return drained, err
}
