package runtime

import (
	"errors"
	"os"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/internal/descriptor"
	"clove.run/clove/store"
)

// servePatience is how long cloved waits for the sign of one before it. A cloved that is
// killed while it starts a supervisor leaves its child with a copy, for the moment between
// fork and exec, which is long on a busy machine.
const servePatience = 5 * time.Second

// Serve binds the installation to its run directory for as long as the file that it returns
// is open; cloved holds it. It fails while another cloved serves the same state directory,
// and while a live run uses another run directory.
func (r *Runtime) Serve() (sign *os.File, err error) {
	for deadline := time.Now().Add(servePatience); ; time.Sleep(5 * time.Millisecond) {
		sign, err = r.serve()
		if !errors.Is(err, errAlive) || time.Now().After(deadline) {
			break
		}
	}
	if errors.Is(err, errAlive) {
		err = &agent.Error{Kind: agent.KindBusy, Message: "another cloved serves " + r.paths.State, Hint: "use that one"}
	}
	return sign, agent.Failed("run directory", err)
}

// serve is one attempt.
func (r *Runtime) serve() (sign *os.File, err error) {
	err = descriptor.Exclusively(r.paths.State, func() (err error) {
		if err = r.paths.bind(); err == nil {
			sign, err = r.paths.signs().give(serverSign)
		}
		return err
	})
	return sign, err
}

// unsupervised returns the runs that are live in the store and have no locked run directory
// here: dead ones, whose supervisor is gone, and lost ones, whose supervisor lives but uses
// another run directory.
func (r *Runtime) unsupervised(s *store.Store) (dead, lost []agent.Run, err error) {
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

// displaced reports that another run directory than this one is in use.
func (r *Runtime) displaced() []Problem {
	var where string
	err := descriptor.Exclusively(r.paths.State, func() error {
		noted, here, err := r.paths.binding()
		if err != nil || noted.Run.is(here) {
			return err
		}
		where = noted.Run.Path
		return r.paths.unused(noted, here)
	})
	if err == nil {
		return nil
	}
	return []Problem{{Kind: ProblemDir, Subject: where, Message: agent.FailureOf(err).Message}}
}
