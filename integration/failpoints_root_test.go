//go:build root

package integration

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/methods"
	"clove.run/clove/client"
	"clove.run/clove/internal/testhost"
)

// faulty is a cloved whose programs have failpoints.
type faulty struct {
	*cloved
	pattern agent.Spec
	old     agent.Run // survives everything
}

// TestFailpoints fails once, and dies once, at every step of a run's life from its request to
// its removal, in cloved and in a supervisor. The next cloved must know everything that was
// acknowledged and still have the live agents, and nothing may be left. The control is the
// same life without a failure, in which every request is acknowledged; each failpoint must
// have been reached.
func TestFailpoints(t *testing.T) {
	f := newFaulty(t)
	if done := f.walk(t, way, failpoint{}, "", ""); done != len(way) {
		t.Fatalf("control: %d of %d requests succeed", done, len(way))
	}
	reached := map[string]bool{}
	for _, point := range inKernel { // by TestKernelFailpoints
		reached[point.name] = true
	}
	every := testhost.Sample(1, 4, 9)
	number := 0
	for process, points := range map[string][]failpoint{"cloved": inCloved, "supervisor": inSupervisor} {
		for _, point := range points {
			reached[point.name] = true
			hows := []string{"die"}
			if point.errors {
				hows = append(hows, "error")
			}
			for _, how := range hows {
				if number++; number%every != 0 {
					continue
				}
				t.Run(process+"/"+point.name+point.at+"/"+how, func(t *testing.T) { f.walk(t, way, point, process, how) })
			}
		}
	}
	names, err := os.ReadFile(filepath.Join(f.bin, "names"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range strings.Fields(string(names)) {
		if !reached[name] {
			t.Errorf("failpoint %s is in no table", name)
		}
	}
}

func newFaulty(t *testing.T) *faulty {
	t.Helper()
	f := &faulty{cloved: newCloved(t)}
	archive := filepath.Join(f.bin, "failpoints.tar")
	bin := t.TempDir()
	if out, err := exec.Command("tar", "-C", bin, "-xf", archive).CombinedOutput(); err != nil {
		t.Fatalf("no programs with failpoints (make failpoints): %v\n%s", err, out)
	}
	f.detach("pattern", "true", "--memory", "64M")
	f.ok("wait", "pattern")
	f.pattern = f.inspect("pattern").Spec
	f.ok("rm", "pattern")
	f.detach("old", "while :; do echo beat; sleep 0.2; done", "--memory", "64M")
	f.old = f.inspect("old")
	f.stop(unix.SIGKILL)
	plain := f.bin
	t.Cleanup(func() { f.bin = plain }) // newCloved's check runs after bin was removed
	f.bin = bin
	f.serve()
	return f
}

// order returns the environment variable that says where a program must fail.
func (f *faulty) order(point failpoint, how string) []string {
	value := point.at + ":" + how
	points := point.name + `=return("` + value + `")`
	if point.name == "storeCommitted" { // it checks the kind of event that storeNoted has recorded
		points += `;storeNoted=return("nothing:error")`
	}
	return []string{"GOFAIL_FAILPOINTS=" + points, "FAILPOINT_SEEN=" + f.seen()}
}

func (f *faulty) seen() string { return filepath.Join(f.bin, "seen") }

// arm starts a cloved that fails at the given place, or whose next supervisor does.
func (f *faulty) arm(t *testing.T, point failpoint, process, how string) {
	t.Helper()
	f.t = t
	os.Remove(f.seen())
	os.Remove(filepath.Join(f.bin, "order"))
	f.stop(unix.SIGKILL)
	switch process {
	case "cloved":
		f.env = f.order(point, how)
	case "supervisor":
		text := ""
		for _, line := range f.order(point, how) {
			name, value, _ := strings.Cut(line, "=")
			text += name + "='" + value + "'\n"
		}
		if err := os.WriteFile(filepath.Join(f.bin, "order"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	f.serve()
	f.env = nil
}

// wayStep is one request, and what must be true once it is acknowledged.
type wayStep struct {
	name string
	ask  func(context.Context, *client.Client, *faulty) error
	// holds checks a new cloved; found says whether the run exists.
	run   string
	holds func(run agent.Run, found bool) bool
}

// walk sends the requests of a way with one failure, and returns how many were acknowledged.
func (f *faulty) walk(t *testing.T, way []wayStep, point failpoint, process, how string) (acknowledged int) {
	acknowledged = f.pass(t, way, point, process, how)
	if _, err := os.Stat(f.seen()); process != "" && err != nil {
		t.Errorf("the failpoint was not reached: %v", err)
	}
	return acknowledged
}

// pass is walk where the way may not lead to the failpoint.
func (f *faulty) pass(t *testing.T, way []wayStep, point failpoint, process, how string) (acknowledged int) {
	defer func(outer *testing.T) { f.t = outer }(f.t)
	f.arm(t, point, process, how)
	var done []string
	for _, s := range way {
		if err := f.request(s.ask); err != nil {
			if process == "" {
				t.Errorf("%s: %v", s.name, err)
			}
			if lostAnswer(err) {
				f.stop(unix.SIGKILL) // it is dying; wait for its end
				f.serve()
			}
			continue
		}
		done = append(done, s.name)
		run, found := f.look(t, s.run)
		if s.holds != nil && !s.holds(run, found) {
			t.Errorf("%s was acknowledged; now %v, %s, %+v, record %+v", s.name, found, run.State, run.Queue, run.Record)
		}
	}
	f.settle(t)
	return len(done)
}

func (f *faulty) request(ask func(context.Context, *client.Client, *faulty) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience())
	defer cancel()
	c, err := client.Dial(ctx, f.socket)
	if err != nil {
		return err
	}
	defer c.Close()
	return ask(ctx, c, f)
}

// look queries the running cloved, and starts one if the last has died.
func (f *faulty) look(t *testing.T, name string) (run agent.Run, found bool) {
	t.Helper()
	get := func(ctx context.Context, c *client.Client, _ *faulty) error {
		result, err := client.Do(ctx, c, methods.RunGet, api.RunParams{Run: name})
		run, found = result.Run, err == nil
		if agent.KindOf(err) == agent.KindNotFound && !lostAnswer(err) {
			return nil
		}
		return err
	}
	err := f.request(get)
	if lostAnswer(err) {
		f.stop(unix.SIGKILL)
		f.serve()
		err = f.request(get)
	}
	if err != nil {
		t.Errorf("get %s: %v", name, err)
	}
	return run, found
}

// settle kills cloved once more and checks the next one: every run is queued, runs, or has its
// record; the old agent is the same and can be controlled; and everything can be removed.
func (f *faulty) settle(t *testing.T) {
	t.Helper()
	f.stop(unix.SIGKILL)
	f.serve()
	err := f.request(func(ctx context.Context, c *client.Client, _ *faulty) error {
		listed, err := client.Collect(client.All(ctx, c, methods.RunList, api.ListParams{All: true}))
		for _, one := range listed {
			run := one.Run
			if run.Spec.ID == f.old.Spec.ID {
				continue
			}
			if run.State == agent.StateEnded && run.Record == nil {
				t.Errorf("%s ended without a record", run.Spec.Name)
			}
			if err := client.Perform(ctx, c, methods.RunRemove, api.RemoveParams{RunParams: api.RunParams{Run: string(run.Spec.ID)}, Force: true}); err != nil && agent.KindOf(err) != agent.KindNotFound {
				t.Errorf("cannot remove %s, %s: %v", run.Spec.Name, run.State, err)
			}
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	old, _ := f.look(t, "old")
	if old.State != agent.StateRunning || old.PID != f.old.PID {
		t.Errorf("the old agent is %s, process %d, was %d", old.State, old.PID, f.old.PID)
	}
	if err := f.request(func(ctx context.Context, c *client.Client, _ *faulty) error {
		_, err := client.Do(ctx, c, methods.RunStats, api.RunParams{Run: "old"})
		return err
	}); err != nil {
		t.Errorf("the old agent: %v", err)
	}
	if r := f.clove("check"); r.code != 0 {
		t.Errorf("check:\n%s%s", r.stdout, r.stderr)
	}
	// Files that were removed, with rm, with --rm or by a start that failed, are never in lost/.
	// TestTheManualsRestore is the control: files without a record lie there.
	for _, dir := range []string{filepath.Join(f.state, "lost"), filepath.Join(f.state, "logs"), filepath.Join(f.state, "layers"), f.run} {
		left, _ := os.ReadDir(dir)
		for _, entry := range left {
			if !slices.Contains([]string{string(f.old.Spec.ID), string(f.old.Spec.ID) + ".img", string(f.old.Spec.ID) + ".json", "clove.sock", "models.sock"}, entry.Name()) {
				t.Errorf("%s holds %s", dir, entry.Name())
			}
		}
	}
}
