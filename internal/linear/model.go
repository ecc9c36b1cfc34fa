package linear

import (
	"fmt"

	"github.com/anishathalye/porcupine"

	"clove.run/clove/agent"
)

// Op is what a worker asks for.
type Op string

// The questions. A create that was answered is two of them, because others see
// the run before its caller does: that it was made, and what the answer showed.
// The end of a run that waits for its turn shows before the run is gone, so a
// remove is preceded by a doom. An agent that is being stopped takes no more
// orders before its end shows, so a stop is preceded by a condemnation.
const (
	OpCreate  Op = "create"
	OpCreated Op = "created"
	OpGet     Op = "get"
	OpKill    Op = "kill"
	OpCondemn Op = "condemn"
	OpStop    Op = "stop"
	OpExec    Op = "exec"
	OpRename  Op = "rename"
	OpDoom    Op = "doom"
	OpRemove  Op = "remove"
)

// Input is a question.
type Input struct {
	Op    Op
	Group int
	Name  int      // index in the group
	To    int      // of a rename
	ID    agent.ID // of a create
}

// Verdict is how a question was answered.
type Verdict string

// The answers that the model knows. Every other one is a failure of its own.
const (
	OK       Verdict = "ok"
	NotFound Verdict = "not-found"
	Conflict Verdict = "conflict"
)

// Output is an answer.
type Output struct {
	Verdict Verdict
	ID      agent.ID    // of the run that the answer is about
	Name    int         // its name then
	State   agent.State // its state then
}

// Pair is how many names a group has.
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
	id     agent.ID
	seen   phase
	doomed bool // it was ended, or will have ended in a moment
}

// group is the state of the model.
type group [Pair]slot

// Model is the sequential description that every history is held against.
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
		next := state.(group)
		legal := next.step(input.(Input), output.(Output))
		return legal, next
	},
	DescribeOperation: func(input, output any) string {
		in, out := input.(Input), output.(Output)
		return fmt.Sprintf("%s %d→%d %.6s: %s %.6s %d %s", in.Op, in.Name, in.To, in.ID, out.Verdict, out.ID, out.Name, out.State)
	},
}

// step tells whether the answer is right in this state, and goes on to the next.
func (g *group) step(in Input, out Output) bool {
	s := &g[in.Name]
	switch in.Op {
	case OpCreated:
		s = &g[out.Name]
		return s.id == out.ID && s.see(phaseOf[out.State])
	case OpDoom:
		s.doomed = s.doomed || s.seen == queued
		return true
	case OpCondemn:
		s.doomed = s.seen != absent
		return true
	case OpCreate:
		if out.Verdict == Conflict {
			return s.seen != absent
		}
		free := s.seen == absent
		*s = slot{id: in.ID, seen: queued}
		return free
	}
	if out.Verdict == NotFound || s.seen == absent {
		return out.Verdict == NotFound && s.seen == absent
	}
	if out.Verdict == Conflict {
		return s.conflict(in.Op)
	}
	return g.act(in, out, s)
}

// act is what a question does to the run that it finds.
func (g *group) act(in Input, out Output, s *slot) bool {
	switch in.Op {
	case OpGet:
		return s.id == out.ID && out.Name == in.Name && s.see(phaseOf[out.State])
	case OpKill:
		legal := s.see(running)
		s.doomed = true
		return legal
	case OpExec:
		return s.see(running)
	case OpStop:
		s.doomed = true
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

// conflict tells whether the run's state may be what forbids op.
func (s *slot) conflict(op Op) bool {
	switch op {
	case OpKill, OpExec: // it does not run yet, or not any more
		return s.seen < running || s.doomed
	case OpRemove:
		return s.seen != ended
	case OpRename: // it is live, the other name is taken, or it was ended while its start was on the way, which no answer shows
		return true
	}
	return false
}

// see goes on to a phase that was seen: never back, and to the end only of one
// that was ended by somebody.
func (s *slot) see(now phase) bool {
	legal := now >= s.seen && (now != ended || s.doomed)
	s.seen = now
	return legal
}
