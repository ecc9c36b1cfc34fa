package linear

import (
	"fmt"

	"github.com/anishathalye/porcupine"

	"clove.run/clove/agent"
)

// Op is what a worker asks for.
type Op string

// The operations. Some are two steps for the model, because other callers can see the
// effect before the answer. A create is "create" (the run exists) and "created" (what the
// answer shows). A remove of a queued run ends it first, so it is preceded by "end-queued".
// An agent that is being stopped refuses further operations before its end is visible, so a
// stop is preceded by "mark-stopped".
const (
	OpCreate      Op = "create"
	OpCreated     Op = "created"
	OpGet         Op = "get"
	OpKill        Op = "kill"
	OpMarkStopped Op = "mark-stopped"
	OpStop        Op = "stop"
	OpExec        Op = "exec"
	OpRename      Op = "rename"
	OpEndQueued   Op = "end-queued"
	OpRemove      Op = "remove"
)

// Input is an operation with its arguments.
type Input struct {
	Op    Op
	Group int
	Name  int      // index in the group
	To    int      // of a rename
	ID    agent.ID // of a create
}

// Answer is how an operation was answered.
type Answer string

// The answers that the model knows. Any other answer fails the test directly.
const (
	OK       Answer = "ok"
	NotFound Answer = "not-found"
	Conflict Answer = "conflict"
)

// Output is an answer.
type Output struct {
	Answer Answer
	ID     agent.ID    // of the run in the answer
	Name   int         // its name then
	State  agent.State // its state then
}

// Pair is the number of names in a group.
const Pair = 2

// phase is how far a run has been seen to be. The zero value is no run.
type phase int

const (
	absent phase = iota
	queued
	starting
	running
	ended
)

var phaseOf = map[agent.State]phase{
	agent.StateQueued: queued, agent.StateStarting: starting, agent.StateRunning: running, agent.StateEnded: ended,
}

// slot is one name's run.
type slot struct {
	id      agent.ID
	seen    phase
	stopped bool // it was ended, or will be in a moment
}

// group is the state of the model.
type group [Pair]slot

// Model is the sequential specification that every history is checked against.
var Model = porcupine.Model{
	Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
		var groups [][]porcupine.Operation
		for _, o := range history {
			for o.Input.(Input).Group >= len(groups) {
				groups = append(groups, nil)
			}
			groups[o.Input.(Input).Group] = append(groups[o.Input.(Input).Group], o)
		}
		return groups
	},
	Init: func() any { return group{} },
	Step: func(state, input, output any) (bool, any) {
		// A copy, because group is an array: porcupine goes back to earlier states.
		next := state.(group)
		legal := next.apply(input.(Input), output.(Output))
		return legal, next
	},
	DescribeOperation: func(input, output any) string {
		in, out := input.(Input), output.(Output)
		return fmt.Sprintf("%s %d→%d %.6s: %s %.6s %d %s", in.Op, in.Name, in.To, in.ID, out.Answer, out.ID, out.Name, out.State)
	},
}

// apply reports whether the answer is correct in this state, and changes the state.
func (g *group) apply(in Input, out Output) bool {
	s := &g[in.Name]
	switch in.Op {
	case OpCreated:
		s = &g[out.Name]
		return s.id == out.ID && s.see(phaseOf[out.State])
	case OpEndQueued:
		s.stopped = s.stopped || s.seen == queued
		return true
	case OpMarkStopped:
		s.stopped = s.seen != absent
		return true
	case OpCreate:
		if out.Answer == Conflict {
			return s.seen != absent
		}
		free := s.seen == absent
		*s = slot{id: in.ID, seen: queued}
		return free
	}
	if out.Answer == NotFound || s.seen == absent {
		return out.Answer == NotFound && s.seen == absent
	}
	if out.Answer == Conflict {
		return s.conflict(in.Op)
	}
	return g.act(in, out, s)
}

// act is the effect of an operation on the run of the name.
func (g *group) act(in Input, out Output, s *slot) bool {
	switch in.Op {
	case OpGet:
		return s.id == out.ID && out.Name == in.Name && s.see(phaseOf[out.State])
	case OpKill:
		legal := s.see(running)
		s.stopped = true
		return legal
	case OpExec:
		return s.see(running)
	case OpStop:
		s.stopped = true
		return s.see(ended)
	case OpRename:
		legal := g[in.To].seen == absent && (s.seen == queued || s.see(ended))
		g[in.To], g[in.Name] = *s, slot{}
		return legal
	case OpRemove:
		legal := s.see(ended)
		*s = slot{}
		return legal
	}
	return false
}

// conflict reports whether the run's state can be the reason for refusing op.
func (s *slot) conflict(op Op) bool {
	switch op {
	case OpKill, OpExec: // it does not run yet, or not any more
		return s.seen < running || s.stopped
	case OpRemove:
		return s.seen != ended
	case OpRename: // it is live, the other name is taken, or it was ended while its start was on the way, which no answer shows
		return true
	}
	return false
}

// see advances to a phase that was seen: never backwards, and to ended only if the run was
// ended by an operation.
func (s *slot) see(now phase) bool {
	legal := now >= s.seen && (now != ended || s.stopped)
	s.seen = now
	return legal
}
