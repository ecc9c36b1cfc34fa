package inside

import (
	"context"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"clove.run/clove/agent"
)

// Runs are the sandboxes of all runs. Behind each call the program of the next is started, so that it
// waits for its stdin when the call comes. Its methods may be called from many goroutines.
type Runs struct {
	dir string // of the run directories

	mu     sync.Mutex // guards the following
	spares map[agent.ID]*spare
	closed bool
}

// spare is a program that waits for a call.
type spare struct {
	*started
	exec  agent.Exec
	timer *time.Timer // ends it
}

// spareTime is how long a program waits for a call.
const spareTime = 10 * time.Second

// NewRuns makes the sandboxes of the runs below a directory.
func NewRuns(dir string) *Runs { return &Runs{dir: dir, spares: map[agent.ID]*spare{}} }

// Inside is Run for a run.
func (r *Runs) Inside(ctx context.Context, run agent.Run, e agent.Exec, stdin []byte, out Output) (exitCode int, err error) {
	id := run.Spec.ID
	s := r.take(id, e)
	if s == nil {
		if s, err = start(r.of(id), e); err != nil {
			return 0, err
		}
	}
	exitCode, err = s.run(ctx, stdin, out)
	if err == nil {
		go r.prepare(id, e)
	}
	return exitCode, err
}

func (r *Runs) of(id agent.ID) string { return filepath.Join(r.dir, string(id)) }

// take returns a program of the run that waits; nil: none does.
func (r *Runs) take(id agent.ID, e agent.Exec) *started {
	r.mu.Lock()
	s := r.spares[id]
	delete(r.spares, id)
	r.mu.Unlock()
	if s == nil {
		return nil
	}
	s.timer.Stop()
	select {
	case <-s.ended: // the agent has ended it, or the run has
		s.drop()
		return nil
	default:
	}
	if !same(s.exec, e) {
		s.drop()
		return nil
	}
	return s.started
}

// same reports whether two requests are for the same program.
func same(a, b agent.Exec) bool {
	return slices.Equal(a.Command, b.Command) && slices.Equal(a.Env, b.Env) && a.Dir == b.Dir && a.User == nil && b.User == nil &&
		a.Timeout == b.Timeout && a.KillRest == b.KillRest && !a.Terminal && !b.Terminal
}

// prepare starts the program of the next call, unless one waits.
func (r *Runs) prepare(id agent.ID, e agent.Exec) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed || r.spares[id] != nil {
		return
	}
	began, err := start(r.of(id), e)
	if err != nil {
		return // the next call says what is wrong
	}
	s := &spare{started: began, exec: e}
	s.timer = time.AfterFunc(spareTime, func() { r.expire(id, s) })
	r.spares[id] = s
}

// expire ends a program for which no call has come.
func (r *Runs) expire(id agent.ID, s *spare) {
	r.mu.Lock()
	waits := r.spares[id] == s
	if waits {
		delete(r.spares, id)
	}
	r.mu.Unlock()
	if waits {
		s.drop()
	}
}

// Close ends the programs that wait.
func (r *Runs) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	for id, s := range r.spares {
		s.timer.Stop()
		s.drop()
		delete(r.spares, id)
	}
	return nil
}
