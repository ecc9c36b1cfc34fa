//go:build root

package runtime

import (
	"syscall"
	"testing"
	"time"

	"clove.run/clove/agent"
)

// talks writes all the time.
const talks = `while :; do echo talk; done`

func TestAPausedAgentMakesNoProgress(t *testing.T) {
	a := startLive(t, talks, nil)
	if !a.goesOn() {
		t.Fatal("control: the agent is silent before it is paused")
	}
	if err := a.Pause(); err != nil {
		t.Fatal(err)
	}
	if !a.silent() {
		t.Error("a paused agent goes on")
	}
	before, err := a.Stats()
	if err != nil || !before.Paused {
		t.Fatalf("%+v, %v", before, err)
	}
	if !a.silent() {
		t.Error("a paused agent goes on")
	}
	if after, _ := a.Stats(); *after.Usage.CPUMS != *before.Usage.CPUMS || after.WallMS <= before.WallMS {
		t.Errorf("from %d ms of CPU to %d, from %d ms to %d", *before.Usage.CPUMS, *after.Usage.CPUMS, before.WallMS, after.WallMS)
	}
	if err := a.Pause(); agent.KindOf(err) != agent.KindConflict {
		t.Errorf("paused twice: %v", err)
	}
	if err := a.Resume(); err != nil {
		t.Fatal(err)
	}
	if !a.goesOn() {
		t.Error("a resumed agent stays silent")
	}
	if err := a.Resume(); agent.KindOf(err) != agent.KindConflict {
		t.Errorf("resumed twice: %v", err)
	}
}

// TestTheDeadlineEndsAPausedAgent: it has the same grace as one that is not paused.
func TestTheDeadlineEndsAPausedAgent(t *testing.T) {
	a := startLive(t, `trap 'echo asked; exit 7' TERM; echo ready; while :; do sleep 0.01; done`, func(s *agent.Spec) {
		s.Limits.StopGrace = 10 * time.Second
	})
	a.line()
	a.endIn(2 * time.Second)
	if err := a.Pause(); err != nil {
		t.Fatal(err)
	}
	if got := a.line(); got != "asked" {
		t.Errorf("it says %q", got)
	}
	if record := a.ends(); record.Status != agent.StatusTimeout || record.ExitCode != agent.ExitTimeout {
		t.Errorf("%s, exit code %d", record.Status, record.ExitCode)
	}
}

func TestAPausedAgentCanBeEnded(t *testing.T) {
	for name, way := range map[string]struct {
		end  func(a *liveAgent) error
		want agent.Status // signaled: it is thawed, gets TERM and ends by it
	}{
		"stop":           {func(a *liveAgent) error { return a.Stop(time.Minute) }, agent.StatusSignaled},
		"stop at once":   {func(a *liveAgent) error { return a.Stop(0) }, agent.StatusKilled},
		"kill":           {func(a *liveAgent) error { return a.Signal(syscall.SIGKILL) }, agent.StatusKilled},
		"the user's end": {func(a *liveAgent) error { a.cancel(); return nil }, agent.StatusSignaled},
	} {
		t.Run(name, func(t *testing.T) {
			a := startLive(t, `exec sleep 1000`, nil)
			if err := a.Pause(); err != nil {
				t.Fatal(err)
			}
			if err := way.end(a); err != nil {
				t.Fatal(err)
			}
			if record := a.ends(); record.Status != way.want {
				t.Errorf("%s, want %s", record.Status, way.want)
			}
			if err := a.Resume(); agent.KindOf(err) != agent.KindConflict {
				t.Errorf("resumed after its end: %v", err)
			}
		})
	}
}

// TestASignalWaitsForAPausedAgent: the signal arrives when the agent is resumed.
func TestASignalWaitsForAPausedAgent(t *testing.T) {
	a := startLive(t, `trap 'echo heard' USR1; echo ready; while :; do sleep 0.01; done`, nil)
	a.line()
	if err := a.Pause(); err != nil {
		t.Fatal(err)
	}
	if err := a.Signal(syscall.SIGUSR1); err != nil {
		t.Fatal(err)
	}
	if !a.silent() {
		t.Error("a paused agent answers")
	}
	if err := a.Resume(); err != nil {
		t.Fatal(err)
	}
	if got := a.line(); got != "heard" {
		t.Errorf("it says %q", got)
	}
}
