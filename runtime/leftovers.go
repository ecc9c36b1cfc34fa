package runtime

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/cgroups"
	"clove.run/clove/internal/initproto"
	"clove.run/clove/store"
)

// What is left behind is removed by what is known of it. reap ends dead runs: live in the
// store, without a supervisor. tidy removes run directories that the store does not know,
// with what belongs to them; each start in the foreground does both. Clean, which cloved
// calls, also looks for orphans of every other kind. GC, for `clove gc`, first ends the
// runs that no one can reach (lost).

// newLease is what a run owns besides its id range, which the store adds.
func newLease(paths map[string]string) *agent.Lease {
	return &agent.Lease{BootID: bootID(), SupervisorPID: os.Getpid(), Cgroups: paths}
}

// bootID identifies this boot of the host; empty, of no boot, if the kernel does not
// have it.
func bootID() string {
	id, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(id))
}

// dead returns the runs that are live in the store and have no supervisor.
func (r *Runtime) dead(s *store.Store) ([]agent.Run, error) {
	dead, _, err := r.unsupervised(s)
	return dead, err
}

// supervised reports whether a process holds the lock of the run, or its sign.
func (r *Runtime) supervised(id agent.ID) bool {
	lives, err := lives(r.paths.runDirectory(id))
	return err == nil && lives || r.paths.signs().held(id)
}

// reap cleans up after runs whose supervisor died, each on its own: one that
// cannot be cleaned never blocks the rest. It returns what it did.
func (r *Runtime) reap(dead []agent.Run) ([]Problem, error) {
	var done []Problem
	var failures []error
	for _, run := range dead {
		if err := r.reapOne(run); err != nil {
			failures = append(failures, fmt.Errorf("cannot clean up after %s (%s): %w", run.Spec.Name, run.Spec.ID, err))
			continue
		}
		done = append(done, Problem{Kind: ProblemRun, Subject: string(run.Spec.ID),
			Message: "the supervisor of " + run.Spec.Name + " died; its leftovers are removed"})
	}
	return done, errors.Join(failures...)
}

// reapOne claims the run first. What was read of it before may be outdated:
// another clove may have cleaned up, and cloved started it again.
func (r *Runtime) reapOne(run agent.Run) error {
	dir, err := claim(r.paths, run.Spec.ID)
	if err != nil {
		if errors.Is(err, errAlive) {
			return nil // another clove is at it
		}
		return err
	}
	if run, err = r.Get(string(run.Spec.ID)); err != nil || run.Lease == nil {
		dir.release()
		if agent.KindOf(err) == agent.KindNotFound {
			err = nil // another clove was faster, and it had --rm
		}
		return err
	}
	if err := r.end(run, dir); err != nil {
		dir.release()
		return err
	}
	// gofail: var leftoversRecorded string
	// failpoint(leftoversRecorded, "")

	return dir.remove()
}

// end removes what a claimed run has on the host, and stores its record.
func (r *Runtime) end(run agent.Run, dir *runDirectory) error {
	// First, and its failure stops the rest: while a process of the agent lives, its ids
	// must not be leased again and its layer must not be removed.
	if err := removeCgroups(run.Lease.Cgroups); err != nil {
		return err
	}
	if err := r.endCommands(run); err != nil {
		return err
	}
	// gofail: var leftoversCleaned string
	// if err := failpoint(leftoversCleaned, ""); err != nil { return err }

	record := r.lostRecord(run, dir)
	image := r.paths.layer(run.Spec.ID)
	keep := !run.Spec.Remove && exists(image) && !neverWrote(run, image)
	if !keep {
		if err := removeLayer(image); err != nil {
			return err
		}
	}
	return r.conclude(run, agent.EventLost, record, keep)
}

// neverWrote reports whether no agent can have written to the run's layer. The state alone does
// not say it: in an older copy of the store a run may be starting that has ended since.
func neverWrote(run agent.Run, image string) bool {
	return run.State == agent.StateStarting && run.Layer == "" && untouched(image)
}

// removeCgroups kills and removes one agent's cgroups. One limit holds for both: a process
// that cannot be killed also prevents the removal.
func removeCgroups(paths map[string]string) error {
	group, err := cgroups.Open(paths)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), killTimeout)
	defer cancel()
	if err := group.Kill(ctx); err != nil {
		return err
	}
	return group.Remove(ctx)
}

// lostRecord is the record of a run whose supervisor died: the one that it left, else
// what clove-init noted, else that it was killed.
func (r *Runtime) lostRecord(run agent.Run, dir *runDirectory) agent.Record {
	if text, err := os.ReadFile(filepath.Join(dir.path, recordFile)); err == nil {
		var record agent.Record
		if json.Unmarshal(text, &record) == nil {
			return record
		}
	}
	seen := exitOf(dir, outcome{cause: causeLifeline})
	l := &launch{runtime: r, spec: run.Spec, run: run, probes: gatherProbes(r.init, r.paths.Run)}
	// What enforced the limits is not stored with a run, so it is computed as the start
	// did. Where this host has changed and would refuse now, it is left empty.
	l.held = enforcement{enforced: map[string]string{}, unenforced: []string{}}
	if held, err := enforce(run.Spec, l.probes); err == nil {
		l.held = held
	}
	record := l.record(seen, cgroups.Stats{}, time.Now())
	// The supervisor counted it, and its counter is lost.
	record.Usage.OutputBytes = nil
	if record.Status == agent.StatusKilled {
		record.Error = lossOf(run, bootID(), dir.made)
	}
	return record
}

// lossOf is why no supervisor saw the agent's end. removed: the run directory is gone.
func lossOf(run agent.Run, boot string, removed bool) *agent.Failure {
	switch {
	case run.Lease != nil && run.Lease.BootID != boot:
		return &agent.Failure{Step: "supervise", Message: "the host was restarted while the agent ran",
			Hint: "a --restart policy starts such an agent again"}
	case removed:
		return &agent.Failure{Step: "supervise", Message: "the run directory was removed while the agent ran: nobody could reach it any more",
			Hint: "do not remove anything below --run-dir while agents live"}
	}
	return &agent.Failure{Step: "supervise", Message: "clove itself was killed while the agent ran",
		Hint: "the agent was ended with it"}
}

// exitOf reads what clove-init noted of the end, if it had the time.
func exitOf(dir *runDirectory, seen outcome) outcome {
	file, err := os.Open(filepath.Join(dir.path, exitFile))
	if err != nil {
		return seen
	}
	defer file.Close()
	m, err := initproto.ReadExit(file)
	if err != nil {
		if !errors.Is(err, io.EOF) {
			seen.exitKnown = false // half a line: it was killed while writing
		}
		return seen
	}
	var noted outcome
	noted.add(m)
	return noted
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
