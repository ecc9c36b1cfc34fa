package store

import (
	"bytes"
	"fmt"

	"go.etcd.io/bbolt"
)

// erase overwrites the free pages: bbolt leaves the text of a removed run there until
// it needs them again, and the text contains the values of the agent's environment.
//
// Writing to free pages is as safe as the next transaction, which may use them: the
// commit that freed them is on the disk, and the lock s.pages keeps every reader and
// writer away. The zeros reach the disk with the kernel's write-back or the next commit.
func (s *Store) erase() error {
	s.pages.Lock()
	defer s.pages.Unlock()
	size := s.db.Info().PageSize
	var free []int
	err := s.db.View(func(tx *bbolt.Tx) (err error) {
		free, err = freePages(tx, size)
		return err
	})
	// A page that an earlier call has erased is zero already: a write would bring each of
	// them to the disk again.
	text, zeros := make([]byte, size), make([]byte, size)
	for _, id := range free {
		at := int64(id) * int64(size)
		if err == nil {
			_, err = s.file.ReadAt(text, at)
		}
		if err == nil && !bytes.Equal(text, zeros) {
			_, err = s.file.WriteAt(zeros, at)
		}
	}
	if err != nil {
		return fmt.Errorf("cannot erase what was removed: %w", err)
	}
	return nil
}

// freePages returns the numbers of the pages that bbolt's free list has.
func freePages(tx *bbolt.Tx, size int) ([]int, error) {
	var free []int
	// Each page by itself, also those behind the first of a longer value: the text of one
	// run can fill several.
	for id := range int(tx.Size()) / size {
		page, err := tx.Page(id)
		if err != nil {
			return nil, err
		}
		if page != nil && page.Type == "free" {
			free = append(free, id)
		}
	}
	return free, nil
}
