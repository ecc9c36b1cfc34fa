// Package undo is the stack on which a multi-step acquire notes how to take
// each step back. It undoes only what was noted, last first, and goes on past
// a step that fails, so that one bad item never leaves the rest behind.
package undo

import (
	"errors"
	"fmt"
)

// Stack holds the undo steps of one operation. The zero value is ready. It is
// not safe for use by several goroutines at once.
type Stack struct {
	steps []step
}

type step struct {
	name string
	undo func() error
}

// Add notes how to take back a step that just succeeded.
func (s *Stack) Add(name string, undo func() error) {
	s.steps = append(s.steps, step{name, undo})
}

// Run takes everything back and empties the stack. It returns all failures,
// each with its step's name.
func (s *Stack) Run() error {
	var failures []error
	for i := len(s.steps) - 1; i >= 0; i-- {
		if err := s.steps[i].undo(); err != nil {
			failures = append(failures, fmt.Errorf("cannot undo %s: %w", s.steps[i].name, err))
		}
	}
	s.steps = nil
	return errors.Join(failures...)
}

// Release forgets the steps: the operation succeeded and the result owns them.
func (s *Stack) Release() { s.steps = nil }

// Take moves the steps to a new stack, for a result that undoes itself later.
func (s *Stack) Take() *Stack {
	taken := &Stack{steps: s.steps}
	s.steps = nil
	return taken
}
