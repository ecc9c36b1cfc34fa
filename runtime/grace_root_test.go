//go:build root

package runtime

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/internal/initproto"
)

// stubborn ignores TERM, computes, and prints now and then.
const stubborn = `trap '' TERM; while :; do i=0; while [ $i -lt 2000 ]; do i=$((i+1)); done; echo works; done`

// TestACloveInitThatStandsStillHoldsNoGrace: the supervisor enforces the end of the grace
// after a stop or a CPU time limit from outside. The control: the stopped clove-init does
// nothing.
func TestACloveInitThatStandsStillHoldsNoGrace(t *testing.T) {
	const grace = 500 * time.Millisecond
	for name, row := range map[string]struct {
		change func(*agent.Spec)
		stop   func(*liveAgent) error
		want   agent.Status
	}{
		"stop":                {func(*agent.Spec) {}, func(a *liveAgent) error { return a.Stop(grace) }, agent.StatusKilled},
		"the end of its user": {func(s *agent.Spec) { s.Limits.StopGrace = grace }, func(a *liveAgent) error { a.cancel(); return nil }, agent.StatusKilled},
		"CPU time": {func(s *agent.Spec) { s.Limits.StopGrace, s.Limits.CPUTime = grace, 3*time.Second },
			func(*liveAgent) error { return nil }, agent.StatusCPUTime},
	} {
		t.Run(name, func(t *testing.T) {
			a := startLive(t, stubborn, row.change)
			a.line()
			a.stopInit()
			if err := a.do(func() error { return a.s.send(initproto.Message{Stop: &initproto.Stop{Grace: 1}}) }); err != nil {
				t.Fatal(err)
			}
			for range 20 { // long after that grace
				a.line()
			}
			if err := row.stop(a); err != nil {
				t.Fatal(err)
			}
			if record := a.ends(); record.Status != row.want || record.Signal == nil || *record.Signal != "SIGKILL" || record.ExecutedMS == nil {
				t.Errorf("%+v", record)
			}
		})
	}
}

// stopInit stops clove-init and returns when its last thread is stopped.
func (a *liveAgent) stopInit() {
	a.t.Helper()
	var pid int
	if err := a.do(func() error { pid = a.s.box.pid; return unix.Kill(pid, unix.SIGSTOP) }); err != nil {
		a.t.Fatal(err)
	}
	tasks := fmt.Sprintf("/proc/%d/task", pid)
	moves := func(name string) bool {
		text, err := os.ReadFile(filepath.Join(tasks, name, "stat"))
		return err == nil && !strings.Contains(string(text), ") T ")
	}
	for deadline := time.Now().Add(soon); slices.ContainsFunc(entriesOf(tasks), moves); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			a.t.Fatal("clove-init does not stop")
		}
	}
}

// TestAPausedAgentThatIsFullOfSignals: a paused agent with a full signal queue ends at its
// deadline. The control: it accepts the first signals and continues.
func TestAPausedAgentThatIsFullOfSignals(t *testing.T) {
	a := startLive(t, `trap '' USR1; echo ready; while :; do sleep 0.01; done`, nil)
	a.line()
	a.endIn(5 * time.Second)
	if err := a.Pause(); err != nil {
		t.Fatal(err)
	}
	var err error
	taken := 0
	for ; err == nil && taken < 1e5; taken++ {
		err = a.Signal(unix.SIGUSR1)
	}
	if agent.KindOf(err) != agent.KindBusy || taken < 10 {
		t.Errorf("after %d signals: %v", taken, err)
	}
	if record := a.ends(); record.Status != agent.StatusTimeout {
		t.Errorf("%s", record.Status)
	}
}
