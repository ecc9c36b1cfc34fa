package runtime

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/cgroups"
	"clove.run/clove/internal/initproto"
	"clove.run/clove/rootfs"
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

// reap cleans up after runs whose supervisor died, each on its own: one that
// cannot be cleaned never blocks the rest. It returns what it did.
func (r *reaper) reap(dead []agent.Run) ([]Problem, error) {
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

// reapOne claims the run first. The state read before may be outdated:
// another clove may have cleaned up, and cloved started it again.
func (r *reaper) reapOne(run agent.Run) error {
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
func (r *reaper) end(run agent.Run, dir *runDirectory) error {
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
func (r *reaper) lostRecord(run agent.Run, dir *runDirectory) agent.Record {
	if text, err := os.ReadFile(filepath.Join(dir.path, recordFile)); err == nil {
		var record agent.Record
		if json.Unmarshal(text, &record) == nil {
			return record
		}
	}
	seen := exitOf(dir, outcome{cause: causeLifeline})
	l := &launch{spec: run.Spec, run: run, probes: gatherProbes(r.init, r.paths.Run)}
	// The enforcing mechanisms are not stored with a run, so they are computed as at the
	// start. Where this host has changed and would refuse now, it is left empty.
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
		return &agent.Failure{Step: agent.StepSupervise, Message: "the host was restarted while the agent ran",
			Hint: "a --restart policy starts such an agent again"}
	case removed:
		return &agent.Failure{Step: agent.StepSupervise, Message: "the run directory was removed while the agent ran, and it could not be reached any more",
			Hint: "do not remove anything below --run-dir while agents live"}
	}
	return &agent.Failure{Step: agent.StepSupervise, Message: "clove itself was killed while the agent ran",
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

// tidy removes what killed cloves have left and the store does not know, or no longer.
// A clove that is killed before its run is stored, or after the run has ended there,
// leaves the run directory, which is made first and removed last, and with it perhaps a
// cgroup and a layer; or an unfinished template. live are the runs with a lease. `clove
// check` reports what fails here.
func (r *reaper) tidy(live map[agent.ID]bool) (tidied bool) {
	for _, name := range runsOf(r.paths.Run) {
		if id := agent.ID(name); id.Valid() && !live[id] && !r.supervised(id) && len(stuckIn(r.paths.runDirectory(id))) == 0 {
			tidied = true
			_ = r.whileClaimed(id, func(run agent.Run) error { return r.removeOrphans(run, id) })
		}
	}
	abandoned, _ := rootfs.SweepAbandoned(r.paths.State)
	return tidied || len(abandoned) > 0
}

// liveIDs returns the ids of the runs that hold a lease.
func liveIDs(s *store.Store) (map[agent.ID]bool, error) {
	live := map[agent.ID]bool{}
	_, err := s.Live(func(id agent.ID) bool { live[id] = true; return false })
	return live, err
}

// removeOrphans removes all that lies on the host for a run that is not live, and releases its
// layer; run is what the store has of it.
func (r *reaper) removeOrphans(run agent.Run, id agent.ID) error {
	h, err := detect()
	if err == nil {
		err = removeCgroups(h.Find(r.cgroupName(id)))
	}
	if err != nil || run.Layer != "" {
		return err
	}
	_, err = r.paths.releaseLayer(id)
	return err
}

// conclude stores the record and gives the lease back. The log of a run that
// is forgotten with its end is removed first: a clove that is killed in between would
// leave it for good. A reader that follows it has it open.
func (r *reaper) conclude(run agent.Run, e agent.Event, record agent.Record, keepLayer bool) error {
	spec := run.Spec
	if spec.Remove {
		if err := errors.Join(r.paths.RemoveLog(spec.ID), r.paths.Spools().Drop(spec.ID)); err != nil {
			return err
		}
	} else {
		// The log may be younger than the start. A full disk must not delay the end.
		_ = r.paths.describeLog(run)
	}
	return r.withStore(func(s *store.Store) error {
		_, err := s.Finish(spec.ID, e, record, func(run *agent.Run) {
			if run.Layer = ""; keepLayer {
				run.Layer = r.paths.layer(spec.ID)
			}
		})
		return err
	})
}

// whileClaimed calls remove, unless nil, while the claim keeps the run from being
// started, and removes the run's directory. It does neither if the run lives: it may
// have been started after gc had looked.
func (r *reaper) whileClaimed(id agent.ID, remove func(agent.Run) error) error {
	dir, err := claim(r.paths, id)
	if err != nil {
		if errors.Is(err, errAlive) {
			return nil
		}
		return err
	}
	// Read under the claim: from here on no start can change what the store says of the
	// run.
	run, err := r.Get(string(id))
	if err != nil && agent.KindOf(err) != agent.KindNotFound {
		dir.release()
		return err
	}
	if run.Lease != nil {
		dir.release() // a dead one, which reap ends
		return nil
	}
	if remove != nil {
		if err := remove(run); err != nil && !errors.Is(err, fs.ErrNotExist) {
			dir.release()
			return err
		}
	}
	return dir.remove()
}
