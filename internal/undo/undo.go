// Package undo is a stack of undo actions for an operation that acquires several things.
// Run undoes only what was added, last first, and continues after an error, so that one
// failure leaves nothing else behind.
package undo

import (
	"errors"
	"fmt"
)

// Stack has the undo actions of one operation. The zero value is ready. It is not safe for
// concurrent use.
type Stack struct {
	actions []action
}

// action undoes one acquisition. The name is for the error of a failed undo.
type action struct {
	name string
	undo func() error
}

// Add adds the undo action of something that was just acquired.
func (s *Stack) Add(name string, undo func() error) {
	s.actions = append(s.actions, action{name, undo})
}

// Run undoes everything and empties the stack. It returns all errors, each with its action's name.
func (s *Stack) Run() error {
	var failures []error
	for i := len(s.actions) - 1; i >= 0; i-- {
		if err := s.actions[i].undo(); err != nil {
			failures = append(failures, fmt.Errorf("cannot undo %s: %w", s.actions[i].name, err))
		}
	}
	s.actions = nil
	return errors.Join(failures...)
}

// Release drops the actions: the operation succeeded, and its result owns what was acquired.
func (s *Stack) Release() { s.actions = nil }

// Take moves the actions to a new stack, for a result that undoes them itself later.
func (s *Stack) Take() *Stack {
	taken := &Stack{actions: s.actions}
	s.actions = nil
	return taken
}
