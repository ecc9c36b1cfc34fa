package daemon

import (
	"context"
	"strings"
	"testing"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/runtime"
)

// have sets what agents use and the host has.
func (r *rig) have(m runtime.HostMemory) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.memory = m
}

// A start waits for the memory of agents and of the host; the reason names both. Each start,
// and a reload, brings the kernel's limit of all agents to the configuration.
func TestStartsWaitForMemoryInUse(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(c *Config) { c.MemoryShare = 0.5 })
	r.d.reconciler.metered = func(agent.Run) (bool, error) { return false, nil }
	most := r.d.config().memoryBytes()
	for what, full := range map[string]runtime.HostMemory{"agents": {Used: most, Available: 9 << 20, Kept: 2 << 20}, "host": {Available: 1 << 20, Kept: 2 << 20}} {
		r.have(full)
		s := spec("waits-for-" + what)
		_, err := r.records.enqueue(agent.Run{Spec: s})
		must(t, err)
		next, err := r.d.reconciler.look(context.Background())
		must(t, err)
		reason, _ := r.d.reconciler.reason(s.ID)
		if !strings.Contains(reason, "agents use ") || !strings.Contains(reason, "the host has ") || next.IsZero() {
			t.Errorf("%s: %q, the next look is at %v", what, reason, next)
		}
		r.have(runtime.HostMemory{Available: 9 << 20, Kept: 2 << 20})
		_, err = r.d.reconciler.look(context.Background())
		must(t, err)
		r.d.reconciler.all.Wait()
	}
	if len(r.names()) != 2 || len(r.together) != 2 || r.together[0] != most {
		t.Errorf("started %v with the limits %v, want each with %d", r.names(), r.together, most)
	}
	must(t, r.d.Reload())
	if r.together[2] != r.d.config().memoryBytes() {
		t.Errorf("after a reload: %v", r.together)
	}
}

// More memory for a live run is counted as for a start.
func TestUpdateFitsIntoTheShare(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(c *Config) { c.MemoryShare = 0.5 })
	most := r.d.config().memoryBytes()
	c := &request{Context: within(t), run: r.add("live", agent.Owner{}, agent.StateRunning)}
	must(t, r.d.cache.refresh())
	for _, row := range []struct {
		used, wanted int64
		fits         bool
	}{{0, most, true}, {0, most + 1, false}, {most / 2, most, true}, {most, most, false}, {2 * most, 1 << 20, true}} {
		r.have(runtime.HostMemory{Used: row.used})
		err := r.d.live().fits(c, row.wanted)
		if row.fits != (err == nil) {
			t.Errorf("%+v: %v", row, err)
		}
		if err != nil {
			wantCode(t, err, api.CodeConflict)
		}
	}
}
