package shadow

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/policies"
)

// under is a run of the standard level with a shadow that change makes narrower.
func under(own, change func(*agent.Spec)) agent.Spec {
	spec := policies.Standard()
	if own != nil {
		own(&spec)
	}
	other := spec
	other.Policy = agent.Policy{Name: "strict"}
	change(&other)
	spec.Shadow = agent.ShadowOf(other)
	return spec
}

func figure(n int64) *int64 { return &n }

// Each limit is exceeded by one more than it, and the control is a use of exactly the limit.
func TestLimits(t *testing.T) {
	t.Parallel()
	for place, row := range map[string]struct {
		change func(*agent.Spec)
		use    func(r *agent.Record, n int64)
		limit  int64
	}{
		"limits.memory":       {func(s *agent.Spec) { s.Limits.MemoryBytes = 1 << 28 }, func(r *agent.Record, n int64) { r.Usage.MemoryPeakBytes = &n }, 1 << 28},
		"limits.pids":         {func(s *agent.Spec) { s.Limits.Pids = 20 }, func(r *agent.Record, n int64) { r.Usage.PidsPeak = &n }, 20},
		"limits.cpu_time":     {func(s *agent.Spec) { s.Limits.CPUTime = time.Second }, func(r *agent.Record, n int64) { r.Usage.CPUMS = &n }, 1000},
		"limits.timeout":      {func(s *agent.Spec) { s.Limits.WallClock = time.Second }, func(r *agent.Record, n int64) { r.WallMS = n }, 1000},
		"limits.output":       {func(s *agent.Spec) { s.Limits.OutputBytes = 10 }, func(r *agent.Record, n int64) { r.Usage.OutputBytes = &n }, 10},
		"limits.disk":         {func(s *agent.Spec) { s.Limits.DiskBytes = 1 << 23 }, func(r *agent.Record, n int64) { r.Usage.DiskBytes = &n }, 1 << 23},
		"network.bytes":       {func(s *agent.Spec) { s.Egress.Limits.Bytes = 10 }, func(r *agent.Record, n int64) { r.Usage.NetRxBytes, r.Usage.NetTxBytes = &n, figure(0) }, 10},
		"network.connections": {func(s *agent.Spec) { s.Egress.Limits.Connections = 3 }, func(r *agent.Record, n int64) { r.Network.ConnectionsPeak = n }, 3},
		"on_denial":           {func(s *agent.Spec) { s.Kernel.OnDenial = "end-after:3" }, func(r *agent.Record, n int64) { r.Shadow.Refused, r.Denials[0].Count = n-1, 1 }, 3},
		"budgets.tokens": {func(s *agent.Spec) { s.Kernel.Budgets = []string{"tokens=5"} }, func(r *agent.Record, n int64) {
			r.Usage.Models = []agent.ModelUse{{Model: "a", TokensIn: n - 2}, {Model: "b", TokensOut: 2}}
		}, 5},
		"budgets.wall_ms":   {func(s *agent.Spec) { s.Kernel.Budgets = []string{"wall_ms=5s"} }, func(r *agent.Record, n int64) { r.WallMS = n }, 5000},
		"budgets.net_bytes": {func(s *agent.Spec) { s.Kernel.Budgets = []string{"net_bytes=5"} }, func(r *agent.Record, n int64) { r.Usage.NetRxBytes, r.Usage.NetTxBytes = figure(n-1), figure(1) }, 5},
	} {
		spec := under(func(s *agent.Spec) { s.Network = agent.NetworkPublic }, row.change)
		used := func(n int64) agent.Record {
			r := agent.Record{Network: &agent.NetworkUse{}, Shadow: &agent.ShadowUse{}, Denials: []agent.Denial{{}}}
			row.use(&r, n)
			return r
		}
		within, above := row.limit, row.limit+1
		if place == "on_denial" {
			within, above = row.limit-1, row.limit // the third refusal ends it
		}
		if got, unknown := Limits(spec, used(within), nil); len(got)+len(unknown) != 0 {
			t.Errorf("%s: %d is too much: %+v, %v", place, within, got, unknown)
		}
		want := []agent.ShadowLimit{{Place: place, Value: row.limit, Peak: above}}
		if got, _ := Limits(spec, used(above), nil); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v", place, got)
		}
	}
}

// An unknown figure exceeds nothing, and a budget that is not counted is named.
func TestUnknownFigures(t *testing.T) {
	t.Parallel()
	spec := under(nil, func(s *agent.Spec) {
		s.Limits.MemoryBytes, s.Limits.Pids, s.Egress.Limits.Bytes = 1<<24, 16, 1
		s.Kernel.Budgets = []string{"reviews=2", "cpu_ms=1s"}
	})
	got, unknown := Limits(spec, agent.Record{}, nil)
	if len(got) != 0 || !slices.Equal(unknown, []string{"budgets.reviews", "budgets.cpu_ms"}) {
		t.Errorf("%+v, %v", got, unknown)
	}
	got, unknown = Limits(spec, agent.Record{}, map[string]int64{"reviews": 3})
	if !reflect.DeepEqual(got, []agent.ShadowLimit{{Place: "budgets.reviews", Value: 2, Peak: 3}}) || len(unknown) != 1 {
		t.Errorf("%+v, %v", got, unknown)
	}
}

func TestPlaces(t *testing.T) {
	t.Parallel()
	public := func(s *agent.Spec) { s.Network = agent.NetworkPublic }
	for _, row := range []struct {
		own, change   func(*agent.Spec)
		wider, unseen []string
	}{
		{nil, func(*agent.Spec) {}, nil, nil},
		{nil, func(s *agent.Spec) { s.Limits.MemoryBytes, s.Limits.MemorySwapBytes = 1<<28, 1<<28 }, nil, nil},
		{nil, func(s *agent.Spec) { s.Limits.ShmBytes, s.Limits.CPUs = 1<<12, 1 }, nil, []string{"limits.cpus", "limits.shm"}},
		{nil, func(s *agent.Spec) { s.Limits.Pids, s.Network = 9999, agent.NetworkPublic }, []string{"limits.pids", "network.mode"}, nil},
		{public, func(s *agent.Spec) { s.Network = agent.NetworkNone }, nil, nil},
		{public, func(s *agent.Spec) { s.Egress.Limits.PerSecond = 1 }, nil, []string{"network.rate"}},
		{func(s *agent.Spec) { s.Network = agent.NetworkHost }, func(s *agent.Spec) { s.Network = agent.NetworkPublic }, nil, []string{"network.mode", "network.connections", "network.rate"}},
	} {
		spec := under(row.own, row.change)
		if wider, unseen := Wider(spec), Unseen(spec, false); !slices.Equal(wider, row.wider) || !slices.Equal(unseen, row.unseen) {
			t.Errorf("wider %v instead of %v, unseen %v instead of %v", wider, row.wider, unseen, row.unseen)
		}
	}
}

// Only what the run's own policy grants, and the shadow does not, would have been refused.
func TestGrants(t *testing.T) {
	t.Parallel()
	spec := under(func(s *agent.Spec) { s.Kernel.Grants = []string{"tool:*", "model:small", "net:api.example.com"} },
		func(s *agent.Spec) { s.Kernel.Grants = []string{"tool:read*"} })
	g, err := NewGrants(spec)
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]bool{"tool:read_file": false, "tool:write_file": true, "model:small": true,
		"model:large": false, "audit:x": false, "no such thing": false} { // neither has them: they were given to the live run
		if _, _, refused := g.Refuses(text); refused != want {
			t.Errorf("%s: %t", text, refused)
		}
	}
	rules := g.Rules(spec, []agent.EgressRule{{Target: "api.example.com"}, {Target: "later.example.com"}})
	if len(rules.Egress.Rules) != 1 || rules.Egress.Rules[0].Target != "later.example.com" || rules.Network != agent.NetworkAllowlist {
		t.Errorf("%+v", rules.Egress.Rules)
	}
	if spec.Shadow.Kernel.Grants = []string{"nonsense"}; err == nil {
		_, err = NewGrants(spec)
	}
	if err == nil {
		t.Error("a grant without a kind is read")
	}
}
