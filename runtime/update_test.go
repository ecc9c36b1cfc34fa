package runtime

import (
	"errors"
	"math"
	"testing"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/cgroups"
	"clove.run/clove/internal/boottime"
	"clove.run/clove/internal/initproto"
)

// planner returns a supervisor of an agent that began a minute ago.
func planner(t *testing.T, change func(*agent.Spec)) *supervisor {
	t.Helper()
	spec := testSpec()
	if change != nil {
		change(&spec)
	}
	return &supervisor{spec: &spec, probes: gatherProbes("", "/run/clove"), held: &enforcement{enforced: map[string]string{}},
		began: boottime.NowNS() - int64(time.Minute)}
}

func number[T any](n T) *T { return &n }

func TestWhatAnUpdateLeadsTo(t *testing.T) {
	t.Parallel()
	const gib = 1 << 30
	for name, row := range map[string]struct {
		change func(*agent.Spec)
		update agent.Update
		want   func(*agent.Limits)
	}{
		"nothing": {nil, agent.Update{}, func(*agent.Limits) {}},
		"memory without swap": {nil, agent.Update{MemoryBytes: number[int64](2 * gib)},
			func(l *agent.Limits) { l.MemoryBytes, l.MemorySwapBytes = 2*gib, 2*gib }},
		"memory keeps its swap": {func(s *agent.Spec) { s.Limits.MemorySwapBytes = 3 * gib }, agent.Update{MemoryBytes: number[int64](2 * gib)},
			func(l *agent.Limits) { l.MemoryBytes, l.MemorySwapBytes = 2*gib, 4*gib }},
		"any swap stays": {func(s *agent.Spec) { s.Limits.MemorySwapBytes = -1 }, agent.Update{MemoryBytes: number[int64](2 * gib)},
			func(l *agent.Limits) { l.MemoryBytes = 2 * gib }},
		"both": {nil, agent.Update{MemoryBytes: number[int64](gib / 2), MemorySwapBytes: number[int64](gib)},
			func(l *agent.Limits) { l.MemoryBytes, l.MemorySwapBytes = gib/2, gib }},
		"pids":           {nil, agent.Update{Pids: number[int64](7)}, func(l *agent.Limits) { l.Pids = 7 }},
		"a longer clock": {nil, agent.Update{WallClock: number(time.Hour)}, func(l *agent.Limits) { l.WallClock = time.Hour }},
		"no clock": {func(s *agent.Spec) { s.Limits.WallClock = time.Hour }, agent.Update{WallClock: number(time.Duration(0))},
			func(l *agent.Limits) { l.WallClock = 0 }},
	} {
		t.Run(name, func(t *testing.T) {
			s := planner(t, row.change)
			want := s.spec.Limits
			row.want(&want)
			got, rules, err := s.planUpdate(row.update)
			if err != nil || rules != nil {
				t.Fatal(rules, err)
			}
			if g := got.spec.Limits; g.MemoryBytes != want.MemoryBytes || g.MemorySwapBytes != want.MemorySwapBytes || g.Pids != want.Pids || g.WallClock != want.WallClock {
				t.Errorf("got %+v, want %+v", g, want)
			}
			if _, held := got.enforced[agent.ControlWallClock]; held != (row.update.WallClock != nil && *row.update.WallClock > 0) {
				t.Errorf("enforced: %v", got.enforced)
			}
		})
	}
}

func TestUpdatesThatAreRefusedBeforeAnythingChanges(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		s    func(*supervisor)
		u    agent.Update
		kind agent.Kind
	}{
		"memory is unenforced": {func(s *supervisor) { s.held.unenforced = []string{agent.ControlMemory} }, agent.Update{MemoryBytes: number[int64](1 << 30)}, agent.KindUnenforceable},
		"pids are unenforced":  {func(s *supervisor) { s.held.unenforced = []string{agent.ControlPids} }, agent.Update{Pids: number[int64](9)}, agent.KindUnenforceable},
		"CPUs are unenforced":  {func(s *supervisor) { s.held.unenforced = []string{agent.ControlCPU} }, agent.Update{CPUs: number(1.0)}, agent.KindUnenforceable},
		"it is being ended":    {func(s *supervisor) { s.seen.cause = causeUser }, agent.Update{}, agent.KindConflict},
		"paused, with a clock": {func(s *supervisor) { s.freezer.paused = true }, agent.Update{WallClock: number(time.Hour)}, agent.KindConflict},
		"negative clock":       {nil, agent.Update{WallClock: number(-time.Hour)}, agent.KindInvalid},
		"clock that is over":   {nil, agent.Update{WallClock: number(30 * time.Second)}, agent.KindInvalid},
		"negative memory":      {nil, agent.Update{MemoryBytes: number[int64](-1)}, agent.KindInvalid},
		"negative swap":        {nil, agent.Update{MemorySwapBytes: number[int64](-2)}, agent.KindInvalid},
		"too few CPUs":         {nil, agent.Update{CPUs: number(0.009)}, agent.KindInvalid},
		"infinite CPUs":        {nil, agent.Update{CPUs: number(math.Inf(1))}, agent.KindInvalid},
		"too many pids":        {nil, agent.Update{Pids: number[int64](1 << 40)}, agent.KindInvalid},
		"rules, no gate":       {nil, agent.Update{Rules: &[]agent.EgressRule{}}, agent.KindConflict},
		"rules, gate lost":     {func(s *supervisor) { s.gate, s.spec.Network = &gated{lost: "it died"}, "public" }, agent.Update{Rules: &[]agent.EgressRule{}}, agent.KindConflict},
		"rules, only ports":    {func(s *supervisor) { s.gate = &gated{} }, agent.Update{Rules: &[]agent.EgressRule{}}, agent.KindConflict},
	} {
		s := planner(t, nil)
		if row.s != nil {
			row.s(s)
		}
		if _, _, err := s.planUpdate(row.u); err == nil || agent.KindOf(err) != row.kind {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestResourcesAreWhatDiffers(t *testing.T) {
	t.Parallel()
	from := agent.Limits{MemoryBytes: 100, MemorySwapBytes: 100, Pids: 5}
	to := agent.Limits{MemoryBytes: 200, MemorySwapBytes: 300, Pids: 6, CPUs: 0.5}
	if r, changed := resourcesBetween(from, from, true); changed || r.Memory != 0 || r.PidsLimit != nil || r.CpuQuota != 0 || !r.SkipDevices {
		t.Errorf("%+v", r)
	}
	r, changed := resourcesBetween(from, to, true)
	if !changed || r.Memory != 200 || r.MemorySwap != 300 || *r.PidsLimit != 6 || r.CpuQuota != 50_000 || r.CpuPeriod != cpuPeriod {
		t.Errorf("%+v", r)
	}
	if r, _ := resourcesBetween(to, from, false); r.Memory != 100 || r.MemorySwap != 0 || *r.PidsLimit != 5 || r.CpuQuota != -1 {
		t.Errorf("back: %+v", r)
	}

}

func TestARefusalNamesWhatIsInUse(t *testing.T) {
	t.Parallel()
	s := newSupervised(t, nil)
	c := limiter{name: s.launch.spec.Name, group: s.launch.group}
	err := c.refused(agent.Limits{MemoryBytes: 5}, &cgroups.MemoryInUseError{Bytes: 7})
	if agent.KindOf(err) != agent.KindConflict {
		t.Errorf("%v", err)
	}
	if err := c.refused(agent.Limits{MemoryBytes: 5}, errors.New("the kernel's")); agent.KindOf(err) != agent.KindInternal {
		t.Errorf("%v", err)
	}
}

// TestExtendWaitsForItsOwnAnswer: it ignores the answers to other requests.
func TestExtendWaitsForItsOwnAnswer(t *testing.T) {
	t.Parallel()
	for _, accepted := range []bool{true, false} {
		s := newSupervised(t, nil)
		sv := supervisorOf(s.launch)
		sv.messages, sv.over = receive(s.launch.conn), stoppedTimer()
		s.sends(initproto.Message{Extended: &initproto.Extended{WallClock: time.Second, Accepted: !accepted}}) // the answer to an earlier one
		s.sends(initproto.Message{Extended: &initproto.Extended{WallClock: time.Hour, Accepted: accepted}})
		if err := sv.extend(time.Hour); (err == nil) != accepted {
			t.Errorf("accepted %v: %v", accepted, err)
		}
		if m := s.hears(); m.Extend == nil || m.Extend.WallClock != time.Hour {
			t.Errorf("clove-init heard %+v", m)
		}
		s.sends(initproto.Message{Exited: &initproto.Exited{Code: 3}})
		s.init.Close()
		if err := sv.extend(time.Hour); agent.KindOf(err) != agent.KindConflict {
			t.Errorf("after the end: %v", err)
		}
		for sv.messages != nil { // unless extend has seen the end
			m, open := <-sv.messages
			sv.onMessage(m, open)
		}
		if !sv.seen.exitKnown || sv.seen.code != 3 {
			t.Errorf("the end was lost: %+v", sv.seen)
		}
	}
}

func TestAnUpdateInOneLine(t *testing.T) {
	t.Parallel()
	u := agent.Update{MemoryBytes: number[int64](5), MemorySwapBytes: number[int64](6), CPUs: number(1.5), Pids: number[int64](7),
		WallClock: number(time.Minute), Rules: &[]agent.EgressRule{{}, {}}}
	const want = "memory 5 bytes, memory and swap 6 bytes, 1.5 CPUs, 7 pids, timeout 1m0s, 2 network rules"
	if got := describeUpdate(u); got != want {
		t.Errorf("got %q", got)
	}
	if got := describeUpdate(agent.Update{}); got != "" {
		t.Errorf("got %q", got)
	}
}
