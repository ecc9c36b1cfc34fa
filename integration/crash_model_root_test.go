//go:build root

package integration

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/methods"
	"clove.run/clove/client"
)

// model is what clients were answered, and so what every later cloved must know.
type model struct {
	mu   sync.Mutex // guards all below
	runs map[agent.ID]*promise
	// told counts the events that must exist after the answers, seen the events that were
	// read.
	told, seen map[happening]int
	last       uint64 // sequence number of the newest event that was read
	answers    int    // acknowledged writes
	faults     []string
	answered   chan struct{} // holds a value after an answer that no goroutine has waited for yet
}

// happening is one kind of event of one run.
type happening struct {
	id   agent.ID
	what agent.RunEventKind
}

// promise is what is known of one run. A request whose answer was lost leaves two
// possibilities, and the next look decides between them.
type promise struct {
	writer int
	id     agent.ID
	names  []string // one of them
	wall   []time.Duration
	exists []bool
	// late are updates whose answers were lost: a supervisor that has the request applies it
	// later, with or without cloved. The value is how many more looks may find it.
	late       map[time.Duration]int
	ends       int  // exit code of the agent itself
	live       bool // it runs until it is stopped
	restarts   bool // by its policy, when it ends
	pid        int  // of clove-init, if live; 0: not known yet
	supervisor int  // pid of its supervisor; 0: not known
	mortal     bool // its supervisor was killed
	lines      int  // of its log that were read
	finished   bool // its record was seen
}

func newModel() *model {
	return &model{runs: map[agent.ID]*promise{}, told: map[happening]int{}, seen: map[happening]int{}, answered: make(chan struct{}, 1)}
}

// acknowledged waits until so many writes were acknowledged, which a busy machine may not
// reach in one life of cloved, or until ctx ends.
func (m *model) acknowledged(ctx context.Context, writes int) {
	for {
		m.mu.Lock()
		enough := m.answers >= writes
		m.mu.Unlock()
		if enough {
			return
		}
		select {
		case <-m.answered:
		case <-ctx.Done():
			return
		}
	}
}

func (m *model) fault(format string, arguments ...any) {
	m.faults = append(m.faults, fmt.Sprintf(format, arguments...))
}

// lostAnswer reports whether cloved ended before it answered.
func lostAnswer(err error) bool {
	var known *agent.Error
	return errors.Is(err, context.Canceled) || errors.As(err, &known) && (known.Kind == agent.KindBusy || known.Kind == agent.KindNotFound && known.Hint == agent.StartCloved())
}

// compare checks a new cloved's answer with the model, and decides which possibility is true.
func (m *model) compare(runs []agent.Run) {
	m.mu.Lock()
	defer m.mu.Unlock()
	found := map[agent.ID]agent.Run{}
	for _, run := range runs {
		found[run.Spec.ID] = run
		if m.runs[run.Spec.ID] == nil {
			m.fault("no client started %s (%s)", run.Spec.Name, run.Spec.ID)
		}
	}
	for id, p := range m.runs {
		run, exists := found[id]
		if !slices.Contains(p.exists, exists) {
			m.fault("%v (%s): exists %v, promised %v", p.names, id, exists, p.exists)
		}
		if !exists {
			delete(m.runs, id)
			continue
		}
		p.exists = []bool{true}
		m.compareOne(p, run)
	}
}

func (m *model) compareOne(p *promise, run agent.Run) {
	if !slices.Contains(p.names, run.Spec.Name) {
		m.fault("%s is called %q, promised %q", p.id, run.Spec.Name, p.names)
	}
	wall := run.Spec.Limits.WallClock
	if p.late[wall] == 0 && !slices.Contains(p.wall, wall) {
		m.fault("%v: wall clock %v, promised %v", p.names, run.Spec.Limits.WallClock, p.wall)
	}
	for open := range p.late {
		if p.late[open]--; p.late[open] == 0 {
			delete(p.late, open)
		}
	}
	p.names, p.wall = []string{run.Spec.Name}, []time.Duration{run.Spec.Limits.WallClock}
	if p.live && !p.mortal {
		if run.State != agent.StateRunning || p.pid != 0 && run.PID != p.pid {
			m.fault("%v is %s, process %d, and was process %d", p.names, run.State, run.PID, p.pid)
		}
		p.pid = run.PID
	}
	p.supervisor = 0 // an ended process's pid may be another's
	if run.Lease != nil {
		p.supervisor = run.Lease.SupervisorPID
	}
	if p.mortal && !p.restarts && run.Record == nil {
		m.fault("%v is %s after its supervisor's death", p.names, run.State)
	}
	if run.Record == nil || p.finished || p.restarts {
		return
	}
	p.finished = true
	switch r := run.Record; {
	case p.mortal:
		// An agent may have ended by SIGPIPE before, when no process read its output any more.
		if r.Status != agent.StatusKilled && r.ExitCode != 128+int(unix.SIGPIPE) {
			m.fault("%v: the record after its supervisor's death: %s %d", p.names, r.Status, r.ExitCode)
		}
	case p.live:
		m.fault("%v ended: %s %d %+v", p.names, r.Status, r.ExitCode, r.Error)
	case p.ends >= 0 && (r.Status != agent.StatusExited || r.ExitCode != p.ends):
		m.fault("%v: the record says %s %d, it ended with %d: %+v", p.names, r.Status, r.ExitCode, p.ends, r.Error)
	}
}

// hear checks one event: each comes once, in order, none is left out.
func (m *model) hear(note api.EventNote) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if note.Gap || note.Event.Sequence != m.last+1 {
		m.fault("after event %d comes %+v", m.last, note)
	}
	if note.Event != nil {
		m.last = note.Event.Sequence
		m.seen[happening{note.Event.ID, note.Event.Kind}]++
	}
	return nil
}

// everyEvent compares the events with the acknowledged changes.
func (m *model) everyEvent() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for h, n := range m.told {
		if m.seen[h] < n {
			m.fault("%s of %s was acknowledged %d times, and %d events tell of it", h.what, h.id, n, m.seen[h])
		}
		m.seen[h] -= n
		delete(m.told, h) // it is confirmed
	}
}

// happened reads events from the model's position until ctx or cloved ends.
func (m *model) happened(ctx context.Context, c *client.Client, on bool) (api.EventResult, error) {
	m.mu.Lock()
	after := m.last
	m.mu.Unlock()
	return client.Each(ctx, c, methods.EventFollow, api.EventParams{After: &after, Follow: on}, m.hear)
}
