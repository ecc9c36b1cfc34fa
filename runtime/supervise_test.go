package runtime

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/internal/boottime"
	"clove.run/clove/internal/initproto"
	"clove.run/clove/store"
)

func TestAnAgentThatEndsByItself(t *testing.T) {
	t.Parallel()
	s := newSupervised(t, nil)
	s.begin()
	s.started()
	s.sends(initproto.Message{Exited: &initproto.Exited{Code: 3, WallNS: int64(5 * time.Second), ExecutedNS: int64(6 * time.Second)}})
	seen := s.ends()
	if seen.executed == nil || *seen.executed != 6*time.Second {
		t.Errorf("it executed for %v", seen.executed)
	}
	if !seen.exitKnown || seen.code != 3 || seen.signal != 0 || seen.wall != 5*time.Second || seen.cause != causeNone {
		t.Errorf("%+v", seen)
	}
	run, err := s.launch.runtime.Get(s.launch.spec.Name)
	if err != nil || run.State != agent.StateRunning || run.PID != 4711 || run.Started.IsZero() {
		t.Errorf("the store says %+v, %v", run, err)
	}
}

// TestCausesThatCloveInitTells: the supervisor takes them over as they are.
func TestCausesThatCloveInitTells(t *testing.T) {
	t.Parallel()
	for reported, want := range map[initproto.Cause]cause{
		initproto.CauseSelf: causeNone, initproto.CauseDeadline: causeDeadline,
		initproto.CauseStop: causeUser, initproto.CauseLifeline: causeLifeline,
	} {
		s := newSupervised(t, nil)
		s.begin()
		s.sends(initproto.Message{Exited: &initproto.Exited{Code: -1, Signal: unix.SIGKILL, Cause: reported}})
		if seen := s.ends(); seen.cause != want || seen.signal != int(unix.SIGKILL) {
			t.Errorf("%q: %+v", reported, seen)
		}
	}
}

func TestACommandThatCannotBeExecuted(t *testing.T) {
	t.Parallel()
	s := newSupervised(t, nil)
	s.begin()
	s.sends(initproto.Message{ExecFailed: &initproto.ExecFailed{Step: "execve", Errno: unix.ENOEXEC, Message: "no", ExitCode: 126}})
	f := s.ends().execFailed
	if f == nil || f.step != "execve" || f.errno != unix.ENOEXEC || f.exitCode != 126 {
		t.Errorf("%+v", f)
	}
}

// TestACloveInitThatDies: it reports nothing, so the supervisor's clock counts.
func TestACloveInitThatDies(t *testing.T) {
	t.Parallel()
	s := newSupervised(t, nil)
	s.begin()
	s.sends(initproto.Message{Started: &initproto.Started{PID: 2, BootTimeNS: boottime.NowNS() - int64(time.Minute)}})
	if seen := s.ends(); seen.exitKnown || seen.wall < time.Minute || seen.wall > time.Minute+soon {
		t.Errorf("%+v", seen)
	}
	never := newSupervised(t, nil)
	never.begin()
	if seen := never.ends(); seen.exitKnown || seen.wall != 0 {
		t.Errorf("it never started: %+v", seen)
	}
}

func TestTooMuchOutputKills(t *testing.T) {
	t.Parallel()
	s := newSupervised(t, func(spec *agent.Spec) { spec.Limits.OutputBytes = 4 })
	kill := s.watchKill()
	s.begin()
	s.launch.pipes.admit(4)
	s.started()
	s.launch.pipes.admit(1)
	kill.wait()
	if seen := s.ends(); seen.cause != causeOutput {
		t.Errorf("%+v", seen)
	}
}

// TestTooMuchInSocketsKills: the share itself may be used, and the first cause found stays.
func TestTooMuchInSocketsKills(t *testing.T) {
	t.Parallel()
	s := newSupervised(t, nil)
	share := s.launch.spec.Limits.SocketBytes()
	loop := newSupervisor(s.launch)
	defer loop.close()
	if loop.checkSockets(share); loop.seen.cause != causeNone {
		t.Errorf("at its share: %+v", loop.seen)
	}
	kill := s.watchKill()
	loop.checkSockets(share + 1)
	kill.wait()
	loop.checkSockets(share + 2)
	if loop.seen.cause != causeSockets || loop.seen.sockets != share+1 {
		t.Errorf("above it: %+v", loop.seen)
	}
}

// TestTooMuchCPUTime: first TERM is sent. The control: below the limit the supervisor only
// looks.
func TestTooMuchCPUTime(t *testing.T) {
	t.Parallel()
	s := newSupervised(t, func(spec *agent.Spec) { spec.Limits.CPUTime = 50 * time.Millisecond })
	s.put("cpu.stat", "usage_usec 49000\n")
	s.begin()
	s.started()
	s.put("cpu.stat", "usage_usec 51000\n")
	if m := s.hears(); m.Stop == nil || m.Stop.Grace != time.Minute {
		t.Errorf("it says %+v", m)
	}
	if seen := s.ends(); seen.cause != causeCPUTime || seen.cpu == nil || *seen.cpu != 51*time.Millisecond {
		t.Errorf("%+v", seen)
	}
	below := newSupervised(t, func(spec *agent.Spec) { spec.Limits.CPUTime = 50 * time.Millisecond })
	below.put("cpu.stat", "usage_usec 49000\n")
	sv := supervisorOf(below.launch)
	sv.cpu = stoppedTimer()
	sv.checkCPU()
	if sv.seen.cause != causeNone || !sv.cpu.Stop() {
		t.Errorf("49 of 50 ms: cause %q, or no second look", sv.seen.cause)
	}
}

func TestTheNextLookAtTheCPUClock(t *testing.T) {
	t.Parallel()
	rows := []struct {
		cpus float64
		left time.Duration
		want time.Duration
	}{
		{1, time.Second, time.Second},
		{0.5, time.Second, 2 * time.Second},
		{1, time.Millisecond, 10 * time.Millisecond},
	}
	for _, row := range rows {
		s := &supervisor{spec: &agent.Spec{Limits: agent.Limits{CPUs: row.cpus}}}
		if got := s.untilCPULimit(row.left); got != row.want {
			t.Errorf("%v left on %v CPUs: looks in %v, want %v", row.left, row.cpus, got, row.want)
		}
	}
}

// TestOneOOMKillEndsTheWholeAgent: also if the kill was before the watch began.
func TestOneOOMKillEndsTheWholeAgent(t *testing.T) {
	t.Parallel()
	for name, early := range map[string]bool{"before": true, "later": false} {
		t.Run(name, func(t *testing.T) {
			s := newSupervised(t, nil)
			kill := s.watchKill()
			if early {
				s.oom <- struct{}{}
			}
			s.begin()
			if !early {
				s.started()
				s.oom <- struct{}{}
			}
			kill.wait()
			s.ends()
		})
	}
}

func TestAnEndedContextStopsTheAgent(t *testing.T) {
	t.Parallel()
	s := newSupervised(t, nil)
	s.begin()
	s.cancel()
	if m := s.hears(); m.Stop == nil || m.Stop.Grace != time.Minute {
		t.Errorf("it says %+v", m)
	}
	if seen := s.ends(); seen.cause != causeUser {
		t.Errorf("%+v", seen)
	}
	impatient := newSupervised(t, func(spec *agent.Spec) { spec.Limits.StopGrace = 0 })
	kill := impatient.watchKill()
	impatient.begin()
	impatient.cancel()
	kill.wait()
	impatient.ends()
}

// TestTheLastResort: clove-init does not enforce the deadline, so the supervisor does.
func TestTheLastResort(t *testing.T) {
	t.Parallel()
	s := newSupervised(t, func(spec *agent.Spec) {
		spec.Limits.WallClock, spec.Limits.StopGrace = time.Millisecond, 0
	})
	kill := s.watchKill()
	began := time.Now()
	s.begin()
	s.started()
	for time.Since(began) < lastResort { // until then, it kills all but clove-init
		kill.wait()
	}
	if seen := s.ends(); seen.cause != causeDeadline {
		t.Errorf("%+v", seen)
	}
}

// TestAKillThatFailsIsRepeated: a stop without a grace kills at once, and until the kill has succeeded.
func TestAKillThatFailsIsRepeated(t *testing.T) {
	t.Parallel()
	s := newSupervised(t, func(spec *agent.Spec) { spec.Limits.StopGrace = 0 })
	s.put("cgroup.procs", "4194305\n") // above every pid
	at := filepath.Join(s.cgroup, "cgroup.kill")
	for _, err := range []error{os.Remove(at), os.Mkdir(at, 0o755)} { // nothing can be written there
		if err != nil {
			t.Fatal(err)
		}
	}
	s.begin()
	s.started()
	s.cancel()
	select {
	case seen := <-s.outcome:
		t.Fatalf("it has ended: %+v", seen)
	case <-time.After(lastResort / 4): // the first kill has failed
	}
	for _, err := range []error{os.Remove(at), os.WriteFile(at, nil, 0o644)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	kill := s.watchFile("cgroup.kill", unix.IN_MODIFY)
	kill.wait()
	if err := os.WriteFile(filepath.Join(s.cgroup, "cgroup.procs"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if seen := s.ends(); seen.cause != causeUser {
		t.Errorf("%+v", seen)
	}
}

// TestTheGraceIsClovesToo: when deadline and grace are over, the supervisor freezes and kills
// all but clove-init, which reports the end.
func TestTheGraceIsClovesToo(t *testing.T) {
	t.Parallel()
	s := newSupervised(t, func(spec *agent.Spec) {
		spec.Limits.WallClock, spec.Limits.StopGrace = time.Millisecond, time.Millisecond
	})
	freeze := s.watchFile("cgroup.freeze", unix.IN_MODIFY)
	s.begin()
	s.started()
	freeze.wait()
	s.sends(initproto.Message{Exited: &initproto.Exited{Code: 3, ExecutedNS: int64(time.Hour)}})
	seen := s.ends()
	if seen.cause != causeNone || seen.code != 3 || seen.executed == nil || *seen.executed < 2*time.Millisecond || *seen.executed == time.Hour {
		t.Errorf("%+v", seen)
	}
}

func TestTheFirstCauseStays(t *testing.T) {
	t.Parallel()
	var seen outcome
	seen.blame(causeOutput)
	seen.blame(causeDeadline)
	seen.add(initproto.Message{Exited: &initproto.Exited{Cause: initproto.CauseLifeline}})
	if seen.cause != causeOutput {
		t.Errorf("the cause is %s", seen.cause)
	}
}

// TestAStoreThatFailsDoesNotEndTheRun: the failure is reported, and the run continues.
func TestAStoreThatFailsDoesNotEndTheRun(t *testing.T) {
	t.Parallel()
	s := newSupervised(t, nil)
	file, said := stderrFile(t)
	s.launch.streams.Stderr = file
	if err := os.WriteFile(s.launch.runtime.paths.database(), []byte("no database"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.begin()
	s.started()
	s.sends(initproto.Message{Exited: &initproto.Exited{Code: 3}})
	if seen := s.ends(); !seen.exitKnown || seen.code != 3 {
		t.Errorf("%+v", seen)
	}
	if text := said(); !strings.Contains(text, "warning") || !strings.Contains(text, s.launch.spec.Name) {
		t.Errorf("it said %q", text)
	}
}

// TestWithoutAWatchOnMemoryNothingRuns: an agent is killed at once if its OOM kills would not
// be noticed.
func TestWithoutAWatchOnMemoryNothingRuns(t *testing.T) {
	t.Parallel()
	s := newSupervised(t, nil)
	if err := os.RemoveAll(s.cgroup); err != nil {
		t.Fatal(err)
	}
	seen := s.launch.supervise(s.ctx, s.signals)
	if seen.startError == nil || agent.FailureOf(seen.startError).Step != "watch memory" {
		t.Errorf("%+v", seen)
	}
}

// TestAStoreThatIsInUseDelaysNoEnd: another process's long transaction does not delay the
// deadline.
func TestAStoreThatIsInUseDelaysNoEnd(t *testing.T) {
	t.Parallel()
	s := newSupervised(t, func(spec *agent.Spec) { spec.Limits.WallClock, spec.Limits.StopGrace = time.Millisecond, 0 })
	other, err := store.Open(s.launch.runtime.paths.database(), soon)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	kill := s.watchKill()
	s.begin()
	s.started()
	kill.wait()
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	s.ends()
	if run, err := s.launch.runtime.Get(s.launch.spec.Name); err != nil || run.State != agent.StateRunning {
		t.Errorf("its start was not noted: %+v, %v", run, err)
	}
}
