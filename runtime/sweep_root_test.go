//go:build root

package runtime

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/internal/testhost"
)

// TestEveryStepMayFail injects a failure at each launch step in turn: the
// record names the step, nothing is left. The control is the launch without a
// failure, which ends by itself.
func TestEveryStepMayFail(t *testing.T) {
	r := newRuntime(t)
	for kind, sleeper := range sleepers {
		t.Run(kind, func(t *testing.T) { sweepFailures(t, r, sleeper) })
	}
}

func sweepFailures(t *testing.T, r *Runtime, sleeper func() agent.Spec) {
	r.failAt = nil
	whole := sleeper()
	whole.Command = []string{"true"}
	record, err := r.Run(context.Background(), whole, IO{Stderr: os.Stderr})
	if err != nil || record.Status != agent.StatusExited || record.ExitCode != 0 {
		t.Fatalf("control: %+v, %v", record, err)
	}
	for _, s := range steps {
		t.Run(s.name, func(t *testing.T) {
			testhost.NoResidue(t, r.paths.Run, r.paths.layers())
			r.failAt = func(step string) error {
				if step == s.name {
					return fmt.Errorf("cannot do the impossible: %w", unix.EDOM)
				}
				return nil
			}
			spec := sleeper()
			record, err := r.Run(context.Background(), spec, IO{Stderr: os.Stderr})
			if err != nil {
				t.Fatal(err)
			}
			f := record.Error
			if record.Status != agent.StatusStartFailed || record.ExitCode != agent.ExitStartFailed || f == nil ||
				f.Step != s.name || f.Errno != unix.EDOM.Error() || !strings.Contains(f.Message, "the impossible") || f.Hint == "" {
				t.Errorf("record: %s, exit %d, failure %+v", record.Status, record.ExitCode, f)
			}
			run, err := r.Get(spec.Name)
			if err != nil || run.State != agent.StateEnded || run.Lease != nil {
				t.Errorf("the store says %s, lease %v, %v", run.State, run.Lease, err)
			}
			clean(t, r)
		})
	}
}

// TestEveryStepMayBeTheLast kills the launching process at each step: one gc removes
// everything. The control is check before that gc, which finds the dead run.
func TestEveryStepMayBeTheLast(t *testing.T) {
	r := newRuntime(t)
	for kind := range sleepers {
		t.Run(kind, func(t *testing.T) { sweepKills(t, r, kind) })
	}
}

func sweepKills(t *testing.T, r *Runtime, kind string) {
	for _, s := range steps {
		t.Run(s.name, func(t *testing.T) {
			testhost.NoResidue(t, r.paths.Run, r.paths.layers())
			killLauncher(t, r, kind, s.name)
			problems, err := r.Check()
			if err != nil || len(problems) == 0 || problems[0].Kind != ProblemRun {
				t.Errorf("control: check finds %v, %v", problems, err)
			}
			removed, err := r.GC()
			if err != nil || len(removed) == 0 {
				t.Errorf("gc removed %v, %v", removed, err)
			}
			clean(t, r)
			runs, err := r.List()
			if err != nil || len(runs) == 0 {
				t.Fatal(runs, err)
			}
			last := runs[0]
			if last.State != agent.StateEnded || last.Record == nil || last.Record.Status != agent.StatusKilled || last.Record.Error == nil {
				t.Errorf("the store says %s, %+v", last.State, last.Record)
			}
		})
	}
}

// killLauncher starts this binary again as a process that launches and dies at a step, and
// waits for the end of a pipe that all its children inherit.
func killLauncher(t *testing.T, r *Runtime, kind, at string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testhost.Patience(time.Minute))
	defer cancel()
	dir := strings.TrimSuffix(r.paths.State, "/state")
	cmd := exec.CommandContext(ctx, "/proc/self/exe")
	cmd.Env = append(os.Environ(), killAtVariable+"="+at, dirVariable+"="+dir, initVariable+"="+r.init, sleeperVariable+"="+kind)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != unix.SIGKILL {
		t.Fatalf("the launcher was not killed at %s: %v\n%s", at, err, out)
	}
}

// TestAFailedTearDownKeepsTheRecord: the next clove finds the record where the first one left
// it, and stores it unchanged.
func TestAFailedTearDownKeepsTheRecord(t *testing.T) {
	r := newRuntime(t)
	spec := sleeper()
	l := &launch{runtime: r, spec: spec, trace: newTrace(IO{})}
	if err := errors.Join(l.prepare(), l.register()); err != nil {
		t.Fatal(err)
	}
	l.undo.Add("the impossible", func() error { return unix.EBUSY })
	record, err := l.finish(outcome{exitKnown: true, code: 5}, &signals{})
	var failure *agent.Error
	if !errors.As(err, &failure) || !errors.Is(err, unix.EBUSY) || !strings.Contains(failure.Hint, "clove gc") {
		t.Errorf("finish: %v", err)
	}
	if record.ExitCode != 5 {
		t.Errorf("record: %+v", record)
	}
	if _, err := r.GC(); err != nil {
		t.Error(err)
	}
	run, err := r.Get(spec.Name)
	if err != nil || run.Record == nil || run.Record.ExitCode != 5 || run.Record.Status != agent.StatusExited {
		t.Errorf("kept: %+v, %v", run.Record, err)
	}
	clean(t, r)
}
