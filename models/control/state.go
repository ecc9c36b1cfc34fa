package control

import (
	"slices"
	"sync"
)

// state is where a call stands.
type state int

const (
	stateDeciding state = iota // its target is chosen, and it waits for its turn; nothing is reserved
	stateReserved              // what a try can cost is reserved
	stateFlying                // a clove-upstream makes it
	stateFailed                // a try has failed, and another target is chosen
	stateRefused               // ended without a reservation
	stateSettled               // ended and paid
)

// transitions are the states that follow each.
var transitions = map[state][]state{
	stateDeciding: {stateReserved, stateRefused},
	stateReserved: {stateFlying, stateSettled},
	stateFlying:   {stateFailed, stateSettled},
	stateFailed:   {stateReserved, stateSettled},
}

// lifecycle is the state of a call. The zero value is deciding.
type lifecycle struct {
	mu  sync.Mutex // guards now
	now state
}

// enter moves a call to its next state. It reports false, and changes nothing, where that does
// not follow: of those that end a call at the same time, one settles it.
func (l *lifecycle) enter(next state) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !slices.Contains(transitions[l.now], next) {
		return false
	}
	l.now = next
	return true
}
