package runtime

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/cgroups"
	"clove.run/clove/internal/pidfd"
	"clove.run/clove/store"
)

func installationOf(t *testing.T, p Paths) installation {
	t.Helper()
	found, err := p.installation()
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// newPaths returns paths with two directories that exist.
func newPaths(t *testing.T) Paths {
	t.Helper()
	return Paths{State: t.TempDir(), Run: t.TempDir()}
}

// An installation keeps its id, whichever of many concurrent callers asks first. No other
// installation has it, not even a later one at the same path.
func TestAnInstallationHasAnIDOfItsOwn(t *testing.T) {
	t.Parallel()
	p := newPaths(t)
	var all sync.WaitGroup
	seen := make([]string, 16)
	for i := range seen {
		all.Go(func() {
			if found, err := p.installation(); err == nil {
				seen[i] = found.ID
			}
		})
	}
	all.Wait()
	first := installationOf(t, p)
	for _, id := range seen {
		if id != first.ID || len(id) != installationDigits {
			t.Errorf("%q, and %q", first.ID, id)
		}
	}
	if err := os.Rename(p.State, p.State+"-moved"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(p.State + "-moved") })
	if err := os.Mkdir(p.State, 0o700); err != nil {
		t.Fatal(err)
	}
	if other := installationOf(t, p); other.ID == first.ID {
		t.Errorf("another directory at the same path has the same id %s", other.ID)
	}
	if moved := installationOf(t, Paths{State: p.State + "-moved", Run: p.Run}); moved.ID != first.ID {
		t.Errorf("the id was %s and is %s", first.ID, moved.ID)
	}
}

// An installation that was made by a version without ids has live cgroups with names: these
// names stay. The control is a store without live runs.
func TestAnUpgradeKeepsTheNameOfLiveCgroups(t *testing.T) {
	t.Parallel()
	for _, live := range []bool{true, false} {
		r := testRuntime(t)
		if err := os.Remove(r.paths.identity()); err != nil { // as before installations had ids
			t.Fatal(err)
		}
		run, path := deadRun(t, r, nil)
		err := r.withStore(func(s *store.Store) error {
			_, err := s.Amend(run.Spec.ID, agent.RunUpdated, "", func(run *agent.Run) {
				run.Lease.Cgroups = map[string]string{"": "/sys/fs/cgroup/clove/" + string(run.Spec.ID) + "-0a1b2c3d"}
			})
			if err == nil && !live {
				_, err = s.Finish(run.Spec.ID, agent.EventLost, r.lostRecord(run, &runDirectory{path: path}), nil)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		os.Remove(r.paths.identity())
		if found := installationOf(t, r.paths); (found.ID == "0a1b2c3d") != live {
			t.Errorf("live runs %v: the id is %s", live, found.ID)
		}
	}
}

func TestADamagedInstallationIsRefused(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "{}", `{"id":"../../.."}`, `{"id":"0a1b2c"}`, "0a1b2c3d"} {
		p := newPaths(t)
		if err := os.WriteFile(p.identity(), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := p.installation()
		var failure *agent.Error
		if !errors.As(err, &failure) || !strings.Contains(failure.Message, "damaged") || failure.Hint == "" {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// The lock of a killed cloved is free a moment later: its child has a copy of it until the child
// executes.
func TestServeWaitsForAKilledCloved(t *testing.T) {
	t.Parallel()
	p := newPaths(t)
	installationOf(t, p)
	killed, err := (&Runtime{reaper: reaper{site: site{paths: p}}}).Serve()
	if err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(50*time.Millisecond, func() { killed.Close() })
	next, err := (&Runtime{reaper: reaper{site: site{paths: p}}}).Serve()
	if err != nil {
		t.Fatal(err)
	}
	next.Close()
}

// One state directory has one run directory: another one is refused while a run or cloved is
// alive, by whatever path. The controls are the same directory by another path, and another
// directory when nothing is alive.
func TestOneStateDirectoryHasOneRunDirectory(t *testing.T) {
	t.Parallel()
	for name, live := range map[string]func(*testing.T, Paths) (end func()){
		"a run": func(t *testing.T, p Paths) func() {
			d, err := newRunDirectory(p, "00000000000000aa")
			if err != nil {
				t.Fatal(err)
			}
			return d.letGo
		},
		"cloved": func(t *testing.T, p Paths) func() {
			sign, err := (&Runtime{reaper: reaper{site: site{paths: p}}}).Serve()
			if err != nil {
				t.Fatal(err)
			}
			if _, err := (&Runtime{reaper: reaper{site: site{paths: p}}}).Serve(); agent.KindOf(err) != agent.KindBusy {
				t.Errorf("a second cloved: %v", err)
			}
			return func() { sign.Close() }
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPaths(t)
			installationOf(t, p)
			end := live(t, p)
			link := filepath.Join(t.TempDir(), "link")
			if err := os.Symlink(p.Run, link); err != nil {
				t.Fatal(err)
			}
			same, other := Paths{State: p.State, Run: link}, Paths{State: p.State, Run: t.TempDir()}
			start := func(p Paths) error {
				d, err := newRunDirectory(p, "00000000000000bb")
				if err == nil {
					err = d.remove()
				}
				return err
			}
			if err := start(same); err != nil {
				t.Errorf("control: the same directory by another path: %v", err)
			}
			err := start(other)
			var failure *agent.Error
			if !errors.As(err, &failure) || failure.Kind != agent.KindConflict || !strings.Contains(failure.Message, p.Run) || failure.Hint == "" {
				t.Errorf("another directory: %v", err)
			}
			if problems := (&Runtime{reaper: reaper{site: site{paths: other}}}).displaced(); len(problems) != 1 || problems[0].Subject != p.Run {
				t.Errorf("check says %v", problems)
			}
			if err := os.Rename(p.Run, p.Run+"-was"); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { os.RemoveAll(p.Run + "-was") })
			if err := os.Mkdir(p.Run, 0o711); err != nil {
				t.Fatal(err)
			}
			if err := start(p); agent.KindOf(err) != agent.KindConflict {
				t.Errorf("another directory at the same path: %v", err)
			}
			end()
			if err := start(other); err != nil {
				t.Errorf("control: no agent lives any more: %v", err)
			}
		})
	}
}

// startHolder starts a process that holds the lock of a run's directory, as a supervisor of a
// version without alive.lock does.
func startHolder(t *testing.T, path string) *exec.Cmd {
	t.Helper()
	holder := exec.Command("sh", "-c", `exec 9>>"$0" && flock -x 9 && echo ready && exec cat`, filepath.Join(path, lockFile))
	in, err := holder.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := holder.StdoutPipe()
	if err == nil {
		err = holder.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.Close(); holder.Wait() })
	if _, err := out.Read(make([]byte, 6)); err != nil {
		t.Fatal(err)
	}
	return holder
}

// lostRunOf returns a live run whose directory was removed.
func lostRunOf(t *testing.T, r *Runtime) (agent.Run, *exec.Cmd) {
	t.Helper()
	run, path := deadRun(t, r, nil)
	holder := startHolder(t, path)
	err := r.withStore(func(s *store.Store) (err error) {
		run, err = s.Amend(run.Spec.ID, agent.RunUpdated, "", func(run *agent.Run) { run.Lease.SupervisorPID = holder.Process.Pid })
		return err
	})
	if err == nil {
		err = os.RemoveAll(path)
	}
	if err != nil {
		t.Fatal(err)
	}
	return run, holder
}

// A run whose directory was removed is not taken for dead: no clean-up touches it, check
// reports it, and gc ends its supervisor and then cleans up. The control is a run whose
// supervisor died.
func TestALostRunDirectoryIsNotDeath(t *testing.T) {
	t.Parallel()
	r := testRuntime(t)
	lost, holder := lostRunOf(t, r)
	dead, _ := deadRun(t, r, nil)
	removed, err := r.Clean()
	if err != nil || len(removed) != 1 || removed[0].Subject != string(dead.Spec.ID) {
		t.Errorf("control: cleaned %v, %v", removed, err)
	}
	problems, err := r.Check()
	if err != nil || len(problems) != 1 || problems[0].Kind != ProblemRun || problems[0].Subject != string(lost.Spec.ID) ||
		!strings.Contains(problems[0].Message, "gone") {
		t.Errorf("check: %v, %v", problems, err)
	}
	if removed, err = r.GC(); err != nil || len(removed) != 1 || removed[0].Subject != string(lost.Spec.ID) {
		t.Errorf("gc: %v, %v", removed, err)
	}
	if status, err := pidfd.Status(holder.Process.Pid); err == nil && !strings.HasPrefix(status["State"], "Z") {
		t.Errorf("the supervisor lives: %s", status["State"])
	}
	run, err := r.Get(string(lost.Spec.ID))
	if err != nil || run.State != agent.StateEnded || run.Record == nil || run.Record.Error == nil ||
		!strings.Contains(run.Record.Error.Message, "run directory was removed") {
		t.Errorf("%+v, %v", run.Record, err)
	}
}

// A supervisor that holds its lock but whose process cannot be seen from here is left alone;
// check and gc report it.
func TestAnInvisibleSupervisorIsLeftAlone(t *testing.T) {
	t.Parallel()
	r := testRuntime(t)
	run, path := deadRun(t, r, nil)
	sign, err := r.paths.signs().give(signOf(run.Spec.ID))
	if err != nil {
		t.Fatal(err)
	}
	defer takeBack(sign)
	if err := os.RemoveAll(path); err != nil {
		t.Fatal(err)
	}
	if removed, err := r.GC(); err == nil || !strings.Contains(err.Error(), run.Spec.Name) || len(removed) != 0 {
		t.Errorf("gc: %v, %v", removed, err)
	}
	if problems, err := r.Check(); err != nil || len(problems) != 1 || !strings.Contains(problems[0].Message, "pid namespace") {
		t.Errorf("check: %v, %v", problems, err)
	}
	if run, err = r.Get(string(run.Spec.ID)); err != nil || run.Lease == nil {
		t.Errorf("it was cleaned up: %+v, %v", run, err)
	}
}

// A run that an older version started, without a lock in alive.lock, counts as alive too.
func TestTheFirstBindingSeesWhoGivesNoSign(t *testing.T) {
	t.Parallel()
	r := testRuntime(t)
	lostRunOf(t, r)
	if err := os.Remove(r.paths.identity()); err != nil {
		t.Fatal(err)
	}
	installationOf(t, r.paths)
	if _, err := newRunDirectory(r.paths, "00000000000000aa"); agent.KindOf(err) != agent.KindConflict {
		t.Errorf("a run beside it: %v", err)
	}
	if _, err := r.GC(); err != nil {
		t.Error(err)
	}
	d, err := newRunDirectory(r.paths, "00000000000000aa")
	if err != nil {
		t.Fatalf("a run behind it: %v", err)
	}
	d.remove()
}

// If another process has ended the run in the store, its supervisor does not wait to store a
// record: it ends. The control is a store that fails, in TestARecordWaitsForItsPlace.
func TestARunThatWasEndedByOthersEnds(t *testing.T) {
	t.Parallel()
	for _, forgotten := range []bool{false, true} {
		r := testRuntime(t)
		run, path := deadRun(t, r, func(s *agent.Spec) { s.Remove = forgotten })
		if err := r.conclude(run, agent.EventLost, r.lostRecord(run, &runDirectory{path: path}), false); err != nil {
			t.Fatal(err)
		}
		dir, err := claim(r.paths, run.Spec.ID)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.RemoveAll(path); err != nil {
			t.Fatal(err)
		}
		l := &launch{runtime: r, spec: run.Spec, run: run, probes: &probes{cgroups: &cgroups.Host{}}, dir: dir, trace: newTrace(IO{})}
		l.spec.Detached = true
		if _, err := l.finish(outcome{exitKnown: true}, &signals{}); err != nil || r.supervised(run.Spec.ID) {
			t.Errorf("forgotten %v: %v", forgotten, err)
		}
	}
}
