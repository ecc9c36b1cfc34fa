package store

import (
	"bytes"
	"fmt"

	"go.etcd.io/bbolt"
)

// erase overwrites what was removed: bbolt leaves the text of a run in pages that
// no longer belong to anything until it needs them again. Values of an agent's environment are
// in that text.
//
// It is as safe as the next transaction, which may write to the same pages: the
// commit that freed them is on the disk. Nobody else reads or writes pages meanwhile. That it
// is on the disk itself is left to the kernel, or to the next commit.
func (s *Store) erase() error {
	s.pages.Lock()
	defer s.pages.Unlock()
	size := s.db.Info().PageSize
	var free []int
	err := s.db.View(func(tx *bbolt.Tx) (err error) {
		free, err = freePages(tx, size)
		return err
	})
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

// freePages are the pages of the file that belong to nothing.
func freePages(tx *bbolt.Tx, size int) ([]int, error) {
	var free []int
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
