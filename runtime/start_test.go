package runtime

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/internal/initproto"
	"clove.run/clove/internal/pidfd"
)

// awaitOutcome is ends for a clove-init that sends nothing.
func (s *supervised) awaitOutcome() outcome {
	s.t.Helper()
	select {
	case seen := <-s.outcome:
		return seen
	case <-time.After(soon):
		s.t.Fatal("the supervisor does not stop waiting")
		return outcome{}
	}
}

// A start that does not reach the agent's execve is given up: after its time limit, and at
// once if a caller asks for its end. The control is a start that reached it, and lasts an
// hour.
func TestAStartThatHangsBeforeTheAgent(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		bound time.Duration
		want  func(*supervised)
		says  string
	}{
		"no progress": {50 * time.Millisecond, func(*supervised) {}, "no progress for 50ms"},
		"a signal":    {time.Hour, func(s *supervised) { s.signals.incoming <- unix.SIGTERM }, "SIGTERM came"},
		"its end":     {time.Hour, func(s *supervised) { s.cancel() }, "a stop was requested"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSupervised(t, func(spec *agent.Spec) { spec.StartTimeout = row.bound })
			s.begin()
			row.want(s)
			seen := s.awaitOutcome()
			f := agent.FailureOf(seen.startError)
			if hung := (hungError{}); !errors.As(seen.startError, &hung) || f == nil || f.Step != stepExec || !strings.Contains(f.Message, row.says) {
				t.Errorf("%v", seen.startError)
			}
		})
	}
	s := newSupervised(t, func(spec *agent.Spec) { spec.StartTimeout = time.Hour })
	s.begin()
	s.started()
	s.signals.incoming <- unix.SIGTERM
	if m := s.hears(); m.Signal == nil || m.Signal.Number != unix.SIGTERM {
		t.Errorf("control: it says %+v", m)
	}
	s.sends(initproto.Message{Exited: &initproto.Exited{Code: 3}})
	if seen := s.ends(); seen.startError != nil || seen.code != 3 {
		t.Errorf("control: %+v", seen)
	}
}

// A start is stopped if a step fails or does not begin. After the last step there is an agent:
// a signal that comes then is passed on to the agent.
func TestAHaltComesTooLateForTheAgent(t *testing.T) {
	t.Parallel()
	reason := interrupted("orders", unix.SIGTERM)
	for name, row := range map[string]struct{ ended, want error }{
		"done":   {nil, nil},
		"failed": {errors.New("a consequence"), reason},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := &attempt{over: make(chan error, 1), halted: make(chan struct{})}
			a.over <- row.ended
			if err := (&launch{}).halt(a, "orders", reason); !errors.Is(err, row.want) {
				t.Errorf("%v", err)
			}
		})
	}
}

// An abandoned start has its record at once and can be cleaned up. While one of its processes
// exists, check reports it, and the run is neither removed nor started again.
func TestAnAbandonedStart(t *testing.T) {
	t.Parallel()
	r := testRuntime(t)
	run, path := deadRun(t, r, nil)
	dir, err := claim(r.paths, run.Spec.ID)
	if err != nil {
		t.Fatal(err)
	}
	l := &launch{runtime: r, spec: run.Spec, run: run, dir: dir, probes: gatherProbes("", "/run/clove")}
	record, err := l.abandon(noProgress("rootfs", time.Second))
	if err != nil || record.Status != agent.StatusStartFailed || record.ExitCode != agent.ExitStartFailed || record.Error.Step != "rootfs" {
		t.Errorf("%+v, %v", record, err)
	}
	if now, err := r.Get(string(run.Spec.ID)); err != nil || now.State != agent.StateEnded || now.Lease != nil || r.supervised(run.Spec.ID) {
		t.Errorf("%+v, %v", now, err)
	}

	hangs := exec.Command("sleep", "1000")
	if err := hangs.Start(); err != nil {
		t.Fatal(err)
	}
	started, err := pidfd.StartTime(hangs.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(stuckNote{Name: run.Spec.Name, Step: "rootfs", Processes: []stuckProcess{{hangs.Process.Pid, started}, {os.Getpid(), 1}}})
	if err == nil {
		err = os.WriteFile(filepath.Join(path, stuckFile), text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	problems, err := r.Check()
	if err != nil || len(problems) != 1 || problems[0].Kind != ProblemProcess || !strings.Contains(problems[0].Message, "its step rootfs") ||
		!strings.Contains(problems[0].Message, "sleep") {
		t.Errorf("check: %v, %v", problems, err)
	}
	if removed, err := r.GC(); err == nil || len(removed) != 0 || !exists(path) {
		t.Errorf("gc: %v, %v", removed, err)
	}
	if _, err := makeRunDirectory(r.paths, run.Spec.ID); err == nil {
		t.Error("it was started again")
	}
	hangs.Process.Kill()
	hangs.Wait()
	if removed, err := r.GC(); err != nil || len(removed) != 1 || exists(path) {
		t.Errorf("control: gc when it is gone: %v, %v", removed, err)
	}
}

// A launch that hangs before its run is registered is noted too; one that has returned is not.
func TestAStartThatHangsUnknown(t *testing.T) {
	t.Parallel()
	for hangs, want := range map[bool]string{true: "its step prepare", false: ""} {
		r, spec := testRuntime(t), testSpec()
		l := &launch{runtime: r, spec: spec}
		cause := noProgress(stepPrepare, time.Second)
		if hangs {
			cause = hungError{cause}
		}
		if err := l.disown(cause); err != cause {
			t.Errorf("%v", err)
		}
		problems, err := r.Check()
		text := ""
		for _, p := range problems {
			text += p.Kind + ": " + p.Message + "\n"
		}
		if err != nil || !strings.Contains(text, want) || hangs != strings.HasPrefix(text, ProblemProcess) {
			t.Errorf("hangs %v: check: %q, %v", hangs, text, err)
		}
		if _, err := makeRunDirectory(r.paths, spec.ID); (err != nil) != hangs {
			t.Errorf("hangs %v: it is started again: %v", hangs, err)
		}
	}
}

// A signal before the launch begins ends the launch, and nothing is made.
func TestAStartThatEndsBeforeItIsKnown(t *testing.T) {
	t.Parallel()
	for _, step := range []string{stepPrepare, stepRegister} {
		r := testRuntime(t)
		l := &launch{runtime: r, spec: testSpec(), trace: newTrace(IO{})}
		l.probes = gatherProbes("", "/run/clove")
		wanted := errors.New("wanted")
		var begun []string
		err := l.perform(func(next string) error {
			if begun = append(begun, next); next == step {
				return wanted
			}
			return nil
		})
		if step == stepPrepare && err != wanted || l.known.Load() || len(entriesOf(r.paths.Run)) != 0 || begun[0] != stepPrepare {
			t.Errorf("%s: %v, known %v, begun %v, left %v", step, err, l.known.Load(), begun, entriesOf(r.paths.Run))
		}
	}
}
