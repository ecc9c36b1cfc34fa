package store

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"

	"clove.run/clove/agent"
)

// minPrefix is the shortest part of an id that Get takes for one.
const minPrefix = 4

// Get returns the run that ref means: an id, a name, or the beginning of
// exactly one id.
func (s *Store) Get(ref string) (agent.Run, error) {
	var found agent.Run
	err := s.view(func(t *tables) error {
		id, err := t.resolve(ref)
		if err != nil {
			return err
		}
		run, err := t.mustGet(id)
		if err == nil {
			found = *run
		}
		return err
	})
	return found, err
}

// List returns all runs, the newest first.
func (s *Store) List() ([]agent.Run, error) {
	var ids, values [][]byte
	err := s.view(func(t *tables) error {
		return t.runs.ForEach(func(id, value []byte) error {
			// Copied here: only this goroutine survives a page that cannot be read.
			ids, values = append(ids, bytes.Clone(id)), append(values, bytes.Clone(value))
			return nil
		})
	})
	all := make([]agent.Run, len(values))
	if err == nil {
		err = explain(s.path, onAllCPUs(len(values), func(i int) error {
			run, err := decode(ids[i], values[i])
			if err == nil {
				all[i] = *run
			}
			return err
		}))
	}
	if err != nil {
		return nil, err
	}
	slices.SortFunc(all, func(a, b agent.Run) int {
		return cmp.Or(b.Created.Compare(a.Created), strings.Compare(string(a.Spec.ID), string(b.Spec.ID)))
	})
	return all, nil
}

// onAllCPUs does the same with each of so many: reading a long history is
// nothing but decoding.
func onAllCPUs(number int, do func(i int) error) error {
	parts := runtime.GOMAXPROCS(0)
	failed := make([]error, parts)
	var all sync.WaitGroup
	for part := range parts {
		all.Go(func() {
			for i := part; i < number && failed[part] == nil; i += parts {
				failed[part] = do(i)
			}
		})
	}
	all.Wait()
	return errors.Join(failed...)
}

// resolve finds the id that ref means. An id comes before a name and a name
// before a prefix, so that a whole id or name is never ambiguous.
func (t *tables) resolve(ref string) (agent.ID, error) {
	if t.runs.Get([]byte(ref)) != nil {
		return agent.ID(ref), nil
	}
	if id := t.names.Get([]byte(ref)); id != nil {
		return agent.ID(id), nil
	}
	matches := t.withPrefix(ref)
	switch len(matches) {
	case 0:
		return "", notFound(ref)
	case 1:
		return matches[0], nil
	}
	return "", &agent.Error{Kind: agent.KindInvalid, Step: step,
		Message: fmt.Sprintf("%q begins more than one id, %s and %s among them", ref, matches[0], matches[1]),
		Hint:    "give more digits of the id"}
}

// withPrefix returns the first two ids that begin with prefix: more are not
// needed to know that it is ambiguous.
func (t *tables) withPrefix(prefix string) []agent.ID {
	if len(prefix) < minPrefix {
		return nil
	}
	var ids []agent.ID
	cursor := t.runs.Cursor()
	for key, _ := cursor.Seek([]byte(prefix)); bytes.HasPrefix(key, []byte(prefix)) && len(ids) < 2; key, _ = cursor.Next() {
		ids = append(ids, agent.ID(key))
	}
	return ids
}

// mustGet is get, where a run that does not exist is an error.
func (t *tables) mustGet(id agent.ID) (*agent.Run, error) {
	run, err := t.get([]byte(id))
	if run == nil && err == nil {
		err = notFound(string(id))
	}
	return run, err
}

func notFound(ref string) error {
	return &agent.Error{Kind: agent.KindNotFound, Step: step, Message: fmt.Sprintf("there is no run %q", ref),
		Hint: "clove ps -a lists the runs"}
}
