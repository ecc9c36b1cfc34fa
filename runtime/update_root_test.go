//go:build root

package runtime

import (
	"math"
	"strings"
	"testing"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/cgroups"
	"clove.run/clove/internal/testhost"
)

func as[T any](value T) *T { return &value }

// held reads the limits that the kernel enforces on the agent.
func (a *liveAgent) held() cgroups.Limits {
	a.t.Helper()
	limits, err := a.s.group.Limits()
	if err != nil {
		a.t.Fatal(err)
	}
	return limits
}

// spec returns the stored spec.
func (a *liveAgent) spec() agent.Spec {
	a.t.Helper()
	run, err := (&site{paths: a.s.paths}).Get(a.s.spec.Name)
	if err != nil {
		a.t.Fatal(err)
	}
	return run.Spec
}

// endIn sets a wall clock limit that is over after left. If it is over before clove-init gets
// it, the update is refused, so this may take more than one try.
func (a *liveAgent) endIn(left time.Duration) {
	a.t.Helper()
	for deadline := time.Now().Add(soon); ; {
		now, err := a.Stats()
		if err != nil {
			a.t.Fatal(err)
		}
		err = a.Update(agent.Update{WallClock: as(time.Duration(now.WallMS)*time.Millisecond + left)})
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			a.t.Fatal(err)
		}
	}
}

func TestUpdateHoldsInTheKernelAndInTheStore(t *testing.T) {
	a := startLive(t, "exec sleep 1000", nil)
	before := a.held()
	if *before.MemoryBytes != 1<<30 || *before.Pids != 512 || before.CPUs != nil {
		t.Fatalf("control: %+v", before)
	}
	for _, u := range []agent.Update{
		{MemoryBytes: as[int64](512 << 20), Pids: as[int64](100), CPUs: as(0.5)},
		{MemoryBytes: as[int64](2 << 30), Pids: as[int64](600), CPUs: as(1.25)},
	} {
		if err := a.Update(u); err != nil {
			t.Fatal(err)
		}
		held, stored := a.held(), a.spec().Limits
		if *held.MemoryBytes != *u.MemoryBytes || *held.Pids != *u.Pids || math.Abs(*held.CPUs-*u.CPUs) > 1e-4 {
			t.Errorf("the kernel holds %d, %d, %v", *held.MemoryBytes, *held.Pids, *held.CPUs)
		}
		if held.SocketBytes != nil && *held.SocketBytes != *u.MemoryBytes/8 { // v1
			t.Errorf("sockets may hold %d of %d", *held.SocketBytes, *u.MemoryBytes)
		}
		if stored.MemoryBytes != *u.MemoryBytes || stored.MemorySwapBytes != *u.MemoryBytes || stored.Pids != *u.Pids || stored.CPUs != *u.CPUs {
			t.Errorf("the store has %+v", stored)
		}
	}
	if err := a.Stop(0); err != nil {
		t.Fatal(err)
	}
	if record := a.ends(); record.Enforced[agent.ControlCPU] == "" || record.Enforced[agent.ControlWallClock] != "" {
		t.Errorf("the record says %+v", record.Enforced)
	}
}

// TestUpdateIsAllOrNothing: also if only the last of many changes is impossible.
func TestUpdateIsAllOrNothing(t *testing.T) {
	a := startLive(t, `x=$(head -c 60000000 /dev/zero | tr '\0' x); for i in 1 2 3 4; do sleep 1000 & done; echo ready; wait`, nil)
	a.line()
	before, stored := a.held(), a.spec().Limits
	for name, row := range map[string]struct {
		u    agent.Update
		kind agent.Kind
	}{
		"memory in use":        {agent.Update{MemoryBytes: as[int64](20 << 20), Pids: as[int64](300)}, agent.KindConflict},
		"more processes":       {agent.Update{Pids: as[int64](3), MemoryBytes: as[int64](900 << 20), CPUs: as(1.0)}, agent.KindConflict},
		"no memory":            {agent.Update{MemoryBytes: as[int64](0)}, agent.KindInvalid},
		"less swap than none":  {agent.Update{MemorySwapBytes: as[int64](1 << 20)}, agent.KindInvalid},
		"no pids":              {agent.Update{Pids: as[int64](0)}, agent.KindInvalid},
		"no CPUs":              {agent.Update{CPUs: as(0.0)}, agent.KindInvalid},
		"CPUs that are none":   {agent.Update{CPUs: as(math.NaN())}, agent.KindInvalid},
		"time that has passed": {agent.Update{WallClock: as(time.Nanosecond), Pids: as[int64](300)}, agent.KindInvalid},
		"rules without a gate": {agent.Update{Rules: &[]agent.EgressRule{}, Pids: as[int64](300)}, agent.KindConflict},
	} {
		err := a.Update(row.u)
		if agent.KindOf(err) != row.kind || err == nil {
			t.Errorf("%s: %v", name, err)
		}
		now := a.held()
		if *now.MemoryBytes != *before.MemoryBytes || *now.Pids != *before.Pids || now.CPUs != nil || a.spec().Limits.MemoryBytes != stored.MemoryBytes || a.spec().Limits.Pids != stored.Pids {
			t.Errorf("%s: something changed: %d, %d, %v", name, *now.MemoryBytes, *now.Pids, now.CPUs)
		}
	}
	if stats, err := a.Stats(); err != nil || *stats.Events.OOMKill != 0 {
		t.Errorf("%+v, %v", stats.Events, err)
	}
	// Control: a limit above the current use can be set.
	if err := a.Update(agent.Update{MemoryBytes: as[int64](300 << 20)}); err != nil {
		t.Error(err)
	}
}

// TestANewMemoryLimitEndsTheAgent: if the agent exceeds it, and only then.
func TestANewMemoryLimitEndsTheAgent(t *testing.T) {
	a := startLive(t, `while ! test -e /tmp/go; do sleep 0.01; done; x=$(head -c 100000000 /dev/zero | tr '\0' x); echo fits; exec sleep 1000`, nil)
	if err := a.Update(agent.Update{MemoryBytes: as[int64](64 << 20)}); err != nil {
		t.Fatal(err)
	}
	a.exec(agent.Exec{Command: []string{"touch", "/tmp/go"}}, "") // it may be killed together with the agent
	if record := a.ends(); record.Status != agent.StatusOOM || record.Limit.Value != 64<<20 {
		t.Errorf("%s, %+v", record.Status, record.Limit)
	}
}

func TestUpdateOfTheWallClock(t *testing.T) {
	first := testhost.Patience(2 * time.Second) // longer than a pause and two updates take
	second := first + 2*time.Second
	a := startLive(t, "exec sleep 1000", func(s *agent.Spec) { s.Limits.WallClock, s.Limits.StopGrace = first, 0 })
	if err := a.Pause(); err != nil {
		t.Fatal(err)
	}
	if err := a.Update(agent.Update{WallClock: as(time.Hour)}); agent.KindOf(err) != agent.KindConflict {
		t.Errorf("while it is paused: %v", err)
	}
	if err := a.Resume(); err != nil {
		t.Fatal(err)
	}
	if err := a.Update(agent.Update{WallClock: as(second)}); err != nil {
		t.Fatal(err)
	}
	record := a.ends()
	if record.Status != agent.StatusTimeout || record.Limit.Value != second.Milliseconds() || record.WallMS < second.Milliseconds() {
		t.Errorf("%s after %d ms, %+v", record.Status, record.WallMS, record.Limit)
	}
}

// TestWhatTheAgentWasToldStays: the environment of a running process cannot change.
func TestWhatTheAgentWasToldStays(t *testing.T) {
	a := startLive(t, "exec sleep 1000", func(s *agent.Spec) { s.Env = append(s.Env, "CLOVE_MEMORY_BYTES=1073741824") })
	if err := a.Update(agent.Update{MemoryBytes: as[int64](512 << 20)}); err != nil {
		t.Fatal(err)
	}
	if got := strings.TrimSpace(a.shell("echo $CLOVE_MEMORY_BYTES")); got != "1073741824" {
		t.Errorf("it reports %s", got)
	}
}
