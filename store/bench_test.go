package store

import (
	"fmt"
	"testing"
)

// BenchmarkRun measures what the store adds to one clove run, synced to the disk: from Begin
// to Remove, five transactions after three Opens, as in the foreground.
func BenchmarkRun(b *testing.B) {
	path := tempFile(b)
	once := func(f func(*Store) error) {
		s, err := Open(path, patience)
		must(b, err)
		must(b, firstOf(f(s), s.Close()))
	}
	for b.Loop() {
		run := newRun("")
		once(func(s *Store) error { _, err := s.Begin(run); return err })
		once(func(s *Store) error { _, err := endRun(s, run.Spec); return err })
		once(func(s *Store) error { return s.Remove(run.Spec.ID) })
	}
}

// BenchmarkBegin measures one transaction of an open Store.
func BenchmarkBegin(b *testing.B) {
	s := openNew(b)
	for b.Loop() {
		run := newRun("")
		_, err := s.Begin(run)
		must(b, err)
		b.StopTimer()
		_, err = endRun(s, run.Spec)
		must(b, firstOf(err, s.Remove(run.Spec.ID)))
		b.StartTimer()
	}
}

// BenchmarkOpen shows that the time grows little with the file: only bbolt's free list is
// read.
func BenchmarkOpen(b *testing.B) {
	for _, kept := range []int{0, 1000} {
		b.Run(fmt.Sprintf("kept=%d", kept), func(b *testing.B) {
			path := tempFile(b)
			s := open(b, path)
			s.db.NoSync = true
			for range kept {
				run := newRun("")
				_, err := s.Begin(run)
				must(b, err)
				_, err = endRun(s, run.Spec)
				must(b, err)
			}
			must(b, s.Close())
			for b.Loop() {
				s, err := Open(path, patience)
				must(b, firstOf(err, s.Close()))
			}
		})
	}
}

// BenchmarkList reads a thousand runs.
func BenchmarkList(b *testing.B) {
	s := openNew(b)
	s.db.NoSync = true
	for range 1000 {
		run := newRun("")
		_, err := s.Begin(run)
		must(b, err)
	}
	for b.Loop() {
		_, err := s.List()
		must(b, err)
	}
}
