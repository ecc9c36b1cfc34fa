package runtime

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/internal/boottime"
	"clove.run/clove/internal/initproto"
)

// TestTheGraceOfAStopIsClovesToo: a clove-init that gets a stop and does nothing is spared
// when the grace is over, and killed two seconds later. The control is a grace that is not
// over.
func TestTheGraceOfAStopIsClovesToo(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		change func(*agent.Spec)
		stop   func(*supervised)
		want   cause
	}{
		"stop": {func(*agent.Spec) {}, func(s *supervised) { s.cancel() }, causeUser},
		"stop, and a deadline that is far": {func(spec *agent.Spec) { spec.Limits.WallClock = time.Hour },
			func(s *supervised) { s.cancel() }, causeUser},
		"CPU time": {func(spec *agent.Spec) { spec.Limits.CPUTime = 50 * time.Millisecond },
			func(s *supervised) { s.put("cpu.stat", "usage_usec 51000\n") }, causeCPUTime},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSupervised(t, func(spec *agent.Spec) {
				row.change(spec)
				spec.Limits.StopGrace = 300 * time.Millisecond
			})
			freeze, kill := s.watchFile("cgroup.freeze", unix.IN_MODIFY), s.watchKill()
			s.put("cpu.stat", "usage_usec 49000\n")
			s.begin()
			s.started()
			began := time.Now()
			row.stop(s)
			if m := s.hears(); m.Stop == nil || m.Stop.Grace != 300*time.Millisecond {
				t.Fatalf("it says %+v", m)
			}
			freeze.wait()
			if took := time.Since(began); took < 300*time.Millisecond {
				t.Errorf("killed after %s, before the grace was over", took)
			}
			for time.Since(began) < lastResort { // until then, clove-init is spared
				kill.wait()
			}
			if seen := s.ends(); seen.cause != row.want || seen.executed == nil || *seen.executed > soon {
				t.Errorf("%+v", seen)
			}
		})
	}
	patient := newSupervised(t, func(spec *agent.Spec) { spec.Limits.WallClock = 0 })
	kill := patient.watchKill()
	patient.begin()
	patient.cancel()
	patient.hears()
	patient.started() // arms its own clocks
	patient.sends(initproto.Message{Exited: &initproto.Exited{Code: 3, Cause: initproto.CauseStop}})
	if seen := patient.ends(); kill.happened() || seen.code != 3 {
		t.Errorf("control: killed within its grace: %+v", seen)
	}
}

// TestAStopBeforeTheStart: a stop that came before the agent executes keeps its deadline when
// the agent executes after all.
func TestAStopBeforeTheStart(t *testing.T) {
	t.Parallel()
	s := newSupervised(t, func(spec *agent.Spec) { spec.Limits.WallClock = 0 })
	loop := newSupervisor(s.launch)
	defer loop.close()
	loop.end(causeUser, time.Hour)
	loop.onStarted(initproto.Started{PID: 2, BootTimeNS: boottime.NowNS()})
	if !loop.over.Stop() || !loop.last.Stop() {
		t.Error("the grace is not held any more")
	}
	loop.end(causeUser, time.Minute)
	loop.end(causeUser, time.Hour)
	if left := time.Until(loop.graceEnd); left > time.Minute {
		t.Errorf("a later stop gives it %s", left)
	}
	control := newSupervisor(newSupervised(t, func(spec *agent.Spec) { spec.Limits.WallClock = 0 }).launch)
	defer control.close()
	control.onStarted(initproto.Started{PID: 2, BootTimeNS: boottime.NowNS()})
	if control.over.Stop() || control.last.Stop() {
		t.Error("control: it has a deadline that was not set")
	}
}

// TestSignalsThatAreNotRead: a frozen clove-init reads no signals, and its agent
// can be ended all the same.
func TestSignalsThatAreNotRead(t *testing.T) {
	t.Parallel()
	s := newSupervised(t, nil)
	live := make(chan *Live, 1)
	s.launch.streams.Started = func(l *Live) { live <- l }
	kill := s.watchKill()
	s.begin()
	s.started()
	l := <-live
	taken := 0
	var err error
	for ; err == nil && taken < 1e5; taken++ {
		err = l.Signal(unix.SIGUSR1)
	}
	if agent.KindOf(err) != agent.KindBusy || taken < 10 {
		t.Errorf("after %d: %v", taken, err)
	}
	if kill.happened() {
		t.Fatal("control: it was killed already")
	}
	if err := l.Stop(time.Minute); err != nil { // the socket is full
		t.Error(err)
	}
	kill.wait()
	if seen := s.ends(); seen.cause != causeUser {
		t.Errorf("%+v", seen)
	}
}
