package runtime

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/internal/initproto"
	"clove.run/clove/store"
)

// deadRun returns a stored run whose supervisor is dead, with its directory.
func deadRun(t *testing.T, r *Runtime, change func(*agent.Spec)) (agent.Run, string) {
	t.Helper()
	spec := testSpec()
	if change != nil {
		change(&spec)
	}
	dir, err := newRunDirectory(r.paths, spec.ID)
	if err != nil {
		t.Fatal(err)
	}
	run := begin(t, r, spec)
	dir.letGo()
	return run, dir.path
}

// apply moves a run's state as its supervisor would have done.
func apply(t *testing.T, r *Runtime, run agent.Run, e agent.Event) agent.Run {
	t.Helper()
	err := r.withStore(func(s *store.Store) (err error) {
		run, err = s.Apply(run.Spec.ID, e, nil)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return run
}

func TestOnlyTheUnsupervisedAreDead(t *testing.T) {
	t.Parallel()
	r := testRuntime(t)
	dead, _ := deadRun(t, r, nil)
	alive := testSpec()
	dir, err := newRunDirectory(r.paths, alive.ID)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.remove()
	begin(t, r, alive)
	otherBoot := testSpec() // a reboot removed its directory with the tmpfs
	begin(t, r, otherBoot)
	var found []agent.Run
	err = r.withStore(func(s *store.Store) (err error) { found, err = r.dead(s); return err })
	if err != nil || len(found) != 2 {
		t.Fatalf("dead: %d, %v", len(found), err)
	}
	for _, run := range found {
		if run.Spec.ID != dead.Spec.ID && run.Spec.ID != otherBoot.ID {
			t.Errorf("%s is not dead", run.Spec.ID)
		}
	}
}

func TestLeftoversOfTheDeadAreRemoved(t *testing.T) {
	t.Parallel()
	r := testRuntime(t)
	run, dir := deadRun(t, r, nil)
	gone, _ := deadRun(t, r, nil)
	if err := os.RemoveAll(r.paths.runDirectory(gone.Spec.ID)); err != nil {
		t.Fatal(err)
	}
	forgotten, _ := deadRun(t, r, func(s *agent.Spec) { s.Remove = true })
	done, err := r.reap([]agent.Run{run, gone, forgotten})
	if err != nil || len(done) != 3 {
		t.Fatalf("%v, %v", done, err)
	}
	if exists(dir) {
		t.Error("the run directory is left")
	}
	for _, id := range []agent.ID{run.Spec.ID, gone.Spec.ID} {
		kept, err := r.Get(string(id))
		if err != nil || kept.State != agent.StateEnded || kept.Lease != nil || kept.Record.Status != agent.StatusKilled || kept.Record.Error == nil {
			t.Errorf("the store says %+v, %v", kept, err)
		}
	}
	if _, err := r.Get(string(forgotten.Spec.ID)); agent.KindOf(err) != agent.KindNotFound {
		t.Errorf("a run with --rm is remembered: %v", err)
	}
	if again, err := r.reap([]agent.Run{run}); err != nil || len(again) != 1 {
		t.Errorf("a second clean-up, by a slower clove: %v, %v", again, err)
	}
}

// TestABurialThatComesTooLate: a clean-up does nothing to a run that another clove has cleaned
// up and that is queued or started again.
func TestABurialThatComesTooLate(t *testing.T) {
	t.Parallel()
	for _, started := range []bool{false, true} {
		r := testRuntime(t)
		seen, _ := deadRun(t, r, nil)
		if _, err := r.reap([]agent.Run{seen}); err != nil {
			t.Fatal(err)
		}
		err := r.withStore(func(s *store.Store) error { _, err := s.Requeue(seen.Spec.ID, func(*agent.Run) {}); return err })
		if err != nil {
			t.Fatal(err)
		}
		want := agent.StateQueued
		if started {
			dir, err := newRunDirectory(r.paths, seen.Spec.ID)
			if err != nil {
				t.Fatal(err)
			}
			defer dir.remove()
			begin(t, r, seen.Spec)
			want = agent.StateStarting
		}
		if _, err := r.reap([]agent.Run{seen}); err != nil {
			t.Error(err)
		}
		if _, err := r.sweep(Problem{Kind: ProblemDir, Subject: string(seen.Spec.ID)}, nil); err != nil {
			t.Error(err)
		}
		if now, err := r.Get(string(seen.Spec.ID)); err != nil || now.State != want || exists(r.paths.runDirectory(seen.Spec.ID)) != started {
			t.Errorf("%+v, %v; want it %s", now, err, want)
		}
	}
}

// TestOneThatCannotBeCleanedBlocksNobody: a run with a wrong cgroup path cannot be cleaned up,
// and the others are.
func TestOneThatCannotBeCleanedBlocksNobody(t *testing.T) {
	t.Parallel()
	r := testRuntime(t)
	odd, _ := deadRun(t, r, nil)
	err := r.withStore(func(s *store.Store) error {
		_, err := s.Amend(odd.Spec.ID, agent.RunUpdated, "", func(run *agent.Run) { run.Lease.Cgroups = map[string]string{"": "/"} })
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	fine, _ := deadRun(t, r, nil)
	done, err := r.reap([]agent.Run{odd, fine})
	if err == nil || !strings.Contains(err.Error(), odd.Spec.Name) || len(done) != 1 || done[0].Subject != string(fine.Spec.ID) {
		t.Errorf("%v, %v", done, err)
	}
}

// TestWhatBecomesOfTheLayer: the layer of a dead run is kept unless no agent wrote to it or the
// run had --rm. The state in the store does not decide: an older copy of the store has "starting"
// for a run that has worked since.
func TestWhatBecomesOfTheLayer(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct{ ran, noted, remove, kept bool }{
		"ran":                    {ran: true, noted: true, kept: true},
		"ran, in an older store": {ran: true, kept: true},
		"never ran":              {},
		"ran with --rm":          {ran: true, noted: true, remove: true},
		"never, and --rm":        {remove: true},
	} {
		t.Run(name, func(t *testing.T) {
			r := testRuntime(t)
			run, _ := deadRun(t, r, func(s *agent.Spec) { s.Remove = row.remove })
			image := makeLayer(t, r, run, row.ran)
			if row.noted {
				run = apply(t, r, run, agent.EventStarted)
			}
			if _, err := r.reap([]agent.Run{run}); err != nil {
				t.Fatal(err)
			}
			if left := entriesOf(r.paths.layers()); exists(image) != row.kept || len(left) != 0 != row.kept {
				t.Errorf("left are %q", left)
			}
			if kept, err := r.Get(string(run.Spec.ID)); err == nil && (kept.Layer != "") != row.kept {
				t.Errorf("the store says %q", kept.Layer)
			}
		})
	}
}

// makeLayer is what a start leaves of the layer, before or after its agent began.
func makeLayer(t *testing.T, r *Runtime, run agent.Run, ran bool) (image string) {
	t.Helper()
	l := &launch{runtime: r, spec: run.Spec, run: run}
	image = r.paths.layer(run.Spec.ID)
	err := errors.Join(l.describeLayer(), os.WriteFile(image, []byte("work"), 0o600))
	if err == nil && ran {
		err = l.mayWrite()
	}
	if err != nil {
		t.Fatal(err)
	}
	return image
}

// TestWhatIsKnownOfALostRun: the record is the one that its supervisor left; else it follows
// from clove-init's exit file; else it says that the run was killed.
func TestWhatIsKnownOfALostRun(t *testing.T) {
	t.Parallel()
	line := func(m initproto.Message) string {
		text, err := initproto.Encode(m)
		if err != nil {
			t.Fatal(err)
		}
		return string(text) + "\n"
	}
	exited := line(initproto.Message{Exited: &initproto.Exited{Code: 7, WallNS: 5e6}})
	left, _ := json.Marshal(agent.Record{Status: agent.StatusOOM, ExitCode: 137})
	for name, row := range map[string]struct {
		exit, record string
		status       agent.Status
		code         int
	}{
		"nothing":      {"", "", agent.StatusKilled, 137},
		"exited":       {exited, "", agent.StatusExited, 7},
		"by a signal":  {line(initproto.Message{Exited: &initproto.Exited{Code: -1, Signal: unix.SIGSEGV}}), "", agent.StatusSignaled, 139},
		"at deadline":  {line(initproto.Message{Exited: &initproto.Exited{Code: -1, Signal: unix.SIGKILL, Cause: initproto.CauseDeadline}}), "", agent.StatusTimeout, 124},
		"by lifeline":  {line(initproto.Message{Exited: &initproto.Exited{Code: -1, Signal: unix.SIGKILL, Cause: initproto.CauseLifeline}}), "", agent.StatusKilled, 137},
		"not found":    {line(initproto.Message{ExecFailed: &initproto.ExecFailed{Step: "look up", ExitCode: 127}}), "", agent.StatusStartFailed, 127},
		"half a line":  {exited[:10], "", agent.StatusKilled, 137},
		"a record":     {exited, string(left), agent.StatusOOM, 137},
		"half of that": {exited, string(left)[:10], agent.StatusExited, 7},
	} {
		t.Run(name, func(t *testing.T) {
			r := testRuntime(t)
			run, dir := deadRun(t, r, nil)
			for file, text := range map[string]string{exitFile: row.exit, recordFile: row.record} {
				if text == "" {
					continue
				}
				if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			record := r.lostRecord(run, &runDirectory{path: dir})
			if record.Status != row.status || record.ExitCode != row.code {
				t.Errorf("%s, exit %d; want %s, exit %d", record.Status, record.ExitCode, row.status, row.code)
			}
			if (record.Status == agent.StatusKilled) != (record.Error != nil && record.Error.Step == "supervise") {
				t.Errorf("failure: %+v", record.Error)
			}
		})
	}
}

// After a reboot the record says that the host went down, not that clove failed.
func TestLossOf(t *testing.T) {
	t.Parallel()
	for boot, want := range map[string]string{"this": "clove itself was killed", "another": "the host was restarted"} {
		f := lossOf(agent.Run{Lease: &agent.Lease{BootID: "this"}}, boot, false)
		if !strings.Contains(f.Message, want) || f.Hint == "" {
			t.Errorf("%s: %+v", boot, f)
		}
	}
}
