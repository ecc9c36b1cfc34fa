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

// Get returns the run that ref means for root (agent.Resolve).
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
			// Copied here: a fault on a page that cannot be read becomes an error in
			// this goroutine only (database.edge).
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

// onAllCPUs calls do for each i below number, on all CPUs: the cost of reading a long
// history is decoding it.
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

// resolve returns the id that ref means. The store alone, without cloved, is root's.
func (t *tables) resolve(ref string) (agent.ID, error) {
	id, err := agent.Resolve(t, ref, 0)
	return id, named(err)
}

// named gives the step of this package to an error that has none.
func named(err error) error {
	var known *agent.Error
	if errors.As(err, &known) && known.Step == "" {
		known.Step = step
	}
	return err
}

// Has implements agent.Index.
func (t *tables) Has(id agent.ID) bool { return t.runs.Get([]byte(id)) != nil }

// Named implements agent.Index.
func (t *tables) Named(name agent.RunName) (agent.ID, bool) {
	id := t.names.Get(nameKey(name))
	return agent.ID(id), id != nil
}

// Elsewhere implements agent.Index. It reads the whole index of names, because the owner
// comes first in a key. Only a name that root has no run of costs that.
func (t *tables) Elsewhere(name string) (agent.RunName, bool) {
	for key := range each(t.names.Cursor()) {
		if other, err := agent.ParseRunName(string(key), 0); err == nil && other.Name == name {
			return other, true
		}
	}
	return agent.RunName{}, false
}

// Beginning implements agent.Index.
func (t *tables) Beginning(prefix string) []agent.ID {
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
		err = &agent.Error{Kind: agent.KindNotFound, Step: step, Message: fmt.Sprintf("there is no run %q", id), Hint: "clove ps -a lists the runs"}
	}
	return run, err
}
