package runtime

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/internal/pidfd"
	"clove.run/clove/store"
)

// survivor is the living supervisor of a run. The lock of a run directory that it has
// open identifies it, wherever that directory is or was: its pid alone may be another
// process's by now.
type survivor struct {
	process *pidfd.Process
	pid     int
	lock    string // path of the lock, as this mount namespace sees it
	removed bool   // the lock, and so the run directory, for good
}

// survivorOf is nil where there is none, and where this pid namespace does not
// show it.
func survivorOf(run agent.Run) *survivor {
	if run.Lease == nil || run.Lease.SupervisorPID <= 0 {
		return nil
	}
	pid := run.Lease.SupervisorPID
	process, err := pidfd.Open(pid)
	if err != nil {
		return nil
	}
	s := &survivor{process: process, pid: pid}
	dir := fmt.Sprintf("/proc/%d/fd", pid)
	for _, name := range entriesOf(dir) {
		if s.holds(dir, name, run.Spec.ID) {
			return s
		}
	}
	s.process.Close()
	return nil
}

// holds reports whether a descriptor is the run's lock, and is locked. A file that was
// removed is shown with its last path and a remark (proc(5)).
func (s *survivor) holds(dir, descriptor string, id agent.ID) bool {
	path := filepath.Join(dir, descriptor)
	target, err := os.Readlink(path)
	if err != nil {
		return false
	}
	s.lock = strings.TrimSuffix(target, " (deleted)")
	// fdinfo lists the locks that this open file holds (proc_pid_fdinfo(5)): a process that
	// only looks at the file is no supervisor.
	info, err := os.ReadFile(filepath.Join(filepath.Dir(dir), "fdinfo", descriptor))
	if !strings.HasSuffix(s.lock, "/"+string(id)+"/"+lockFile) || err != nil || !strings.Contains(string(info), "FLOCK") {
		return false
	}
	var about unix.Stat_t
	err = unix.Stat(path, &about)
	s.removed = err == nil && about.Nlink == 0
	return err == nil
}

// survives reports whether the run's supervisor lives, by its sign or as a process.
func (p Paths) survives(run agent.Run) bool {
	if p.signs().held(run.Spec.ID) {
		return true
	}
	s := survivorOf(run)
	if s != nil {
		s.process.Close()
	}
	return s != nil
}

// lostRun describes a run that cannot be reached any more, and what becomes of it.
func lostRun(run agent.Run) Problem {
	what := "its run directory is gone, so it cannot be reached, and `clove gc` ends it"
	if s := survivorOf(run); s != nil {
		s.process.Close()
		if err := s.inUse(); err != nil {
			what = err.Error()
		}
	} else {
		what = errUnseen.Error()
	}
	return Problem{Kind: ProblemRun, Subject: string(run.Spec.ID), Message: fmt.Sprintf("%s is %s, but %s", run.Spec.Name, run.State, what)}
}

// errUnseen is for a supervisor that holds its sign but cannot be found in this pid
// namespace's /proc, so it cannot be killed from here.
var errUnseen = errors.New("its supervisor is in another pid namespace: end it there")

// inUse is an error where the run directory is only not the one that is used here.
func (s *survivor) inUse() error {
	if s.removed {
		return nil
	}
	return fmt.Errorf("its supervisor, process %d, has the run directory %s: look after it with that one", s.pid, filepath.Dir(filepath.Dir(s.lock)))
}

// endLost kills the supervisors that cannot be reached: with each its agent ends, and
// the run is a dead one like others.
func endLost(lost []agent.Run) error {
	var failures []error
	for _, run := range lost {
		err := errUnseen
		if s := survivorOf(run); s != nil {
			err = s.end(killTimeout)
			s.process.Close()
		}
		if err != nil {
			failures = append(failures, fmt.Errorf("cannot end %s (%s): %w", run.Spec.Name, run.Spec.ID, err))
		}
	}
	return errors.Join(failures...)
}

// end kills it and waits for its end. clove-init sees its socket close and ends the agent.
func (s *survivor) end(patience time.Duration) error {
	if err := s.inUse(); err != nil {
		return err
	}
	if err := s.process.Signal(unix.SIGKILL); err != nil {
		return err
	}
	if !s.process.WaitFor(patience) {
		return fmt.Errorf("its supervisor, process %d, was killed and is still there after %s", s.pid, patience)
	}
	return nil
}

// unsupervised returns the runs that are live in the store and have no locked run directory
// here: dead ones, whose supervisor is gone, and lost ones, whose supervisor lives but uses
// another run directory.
func (r *site) unsupervised(s *store.Store) (dead, lost []agent.Run, err error) {
	// The lock is tried before a run is decoded, so live runs cost little.
	runs, err := s.Live(func(id agent.ID) bool {
		here, err := lives(r.paths.runDirectory(id))
		return err != nil || !here
	})
	for _, run := range runs {
		if r.paths.survives(run) {
			lost = append(lost, run)
		} else {
			dead = append(dead, run)
		}
	}
	return dead, lost, err
}

// supervised reports whether a process holds the lock of the run, or its sign.
func (r *site) supervised(id agent.ID) bool {
	lives, err := lives(r.paths.runDirectory(id))
	return err == nil && lives || r.paths.signs().held(id)
}

// dead returns the runs that are live in the store and have no supervisor.
func (r *site) dead(s *store.Store) ([]agent.Run, error) {
	dead, _, err := r.unsupervised(s)
	return dead, err
}
