//go:build root

package runtime

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"clove.run/clove/agent"
)

// TestWhatIsValidIsHeld starts a few generated runs. The kernel enforces what Validate accepts
// and the start does not refuse.
func TestWhatIsValidIsHeld(t *testing.T) {
	limits := rapid.Custom(func(t *rapid.T) agent.Limits {
		l := soundLimits(t)
		// Not from the floor on, which TestTheLeastMemory covers: libcontainer's stage is this
		// test binary here, which needs more memory than clove under the race detector.
		l.MemoryBytes = rapid.Int64Range(4*agent.MemoryFloorBytes, 1<<30).Draw(t, "memory of the host")
		l.MemorySwapBytes, l.WallClock, l.CPUTime = l.MemoryBytes, 0, 0
		l.Pids = rapid.Int64Range(agent.PidsFloor, 4096).Draw(t, "pids of the host")
		l.CPUs = rapid.Float64Range(agent.CPUsFloor*10, 2).Draw(t, "cpus of the host")
		l.DiskBytes, l.ShmBytes = 64<<20, 1<<20
		return l
	}).Filter(func(l agent.Limits) bool { return l.Validate() == nil })
	for seed := range 4 {
		want := limits.Example(seed)
		a := startLive(t, "exec sleep 1000", func(s *agent.Spec) {
			want.Rlimits, want.StopGrace = s.Limits.Rlimits, s.Limits.StopGrace
			s.Limits = want
		})
		held := a.held()
		page := int64(4096) // the kernel counts memory in pages
		if *held.MemoryBytes != want.MemoryBytes/page*page || *held.Pids != want.Pids || held.CPUs == nil || math.Abs(*held.CPUs-want.CPUs) > 1e-4 {
			t.Errorf("seed %d: asked for %+v, the kernel holds %+v", seed, want, held)
		}
		if err := a.Stop(0); err != nil {
			t.Fatal(err)
		}
		a.ends()
	}
}
