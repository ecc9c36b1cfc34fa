//go:build root

package runtime

import (
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"clove.run/clove/agent"
	"clove.run/clove/cgroups"
	"clove.run/clove/internal/testhost"
)

// tellAll prints everything that the agent can see of its limits; the script that follows it
// ends the agent.
const tellAll = `
read host </proc/sys/kernel/hostname; echo "hostname $host"
stat -f -c 'shm %b %S' /dev/shm
stat -f -c 'tmpfs %b %S' /scratch
stat -c 'mode %a' /scratch
echo network $(readlink /proc/self/ns/net)
echo swap $(cat /sys/fs/cgroup/memory/memory.memsw.limit_in_bytes /sys/fs/cgroup/memory.swap.max 2>/dev/null)
prlimit --noheadings --raw -o RESOURCE,SOFT,HARD
echo .
`

// endings are the ways in which a generated run ends, each by a limit but the first.
var endings = []struct {
	script  string
	draw    func(*rapid.T, *agent.Limits)
	status  agent.Status
	limit   string
	allowed func(agent.Limits) int64
}{
	{tellAll + "exit 7", func(*rapid.T, *agent.Limits) {}, agent.StatusExited, "", nil},
	{tellAll + "exec cat /dev/zero", func(t *rapid.T, l *agent.Limits) {
		l.OutputBytes = rapid.Int64Range(8<<10, 1<<20).Draw(t, "output")
	}, agent.StatusOutputLimit, agent.ControlOutput, func(l agent.Limits) int64 { return l.OutputBytes }},
	{"exec sleep 1000", func(t *rapid.T, l *agent.Limits) {
		l.WallClock = time.Duration(rapid.Int64Range(1, int64(500*time.Millisecond)).Draw(t, "wall clock"))
	}, agent.StatusTimeout, agent.ControlWallClock, func(l agent.Limits) int64 { return l.WallClock.Milliseconds() }},
	{"while :; do :; done", func(t *rapid.T, l *agent.Limits) {
		l.CPUTime = time.Duration(rapid.Int64Range(1, int64(200*time.Millisecond)).Draw(t, "cpu time"))
	}, agent.StatusCPUTime, agent.ControlCPUTime, func(l agent.Limits) int64 { return l.CPUTime.Milliseconds() }},
}

// TestEveryValidFieldIsHeld starts generated runs. For each field that Validate accepts and
// that sets a limit of the kernel, a file or a watch of clove's, it compares the value with
// what the agent sees, or with the limit that ended it according to the record.
func TestEveryValidFieldIsHeld(t *testing.T) {
	for seed := range testhost.Sample(48, 8, 4) {
		ending := endings[seed%len(endings)]
		spec := rapid.Custom(func(t *rapid.T) agent.Spec {
			s := drawnSpec(t)
			ending.draw(t, &s.Limits)
			return s
		}).Filter(func(s agent.Spec) bool { return s.Validate() == nil }).Example(seed)
		a := startLive(t, ending.script, func(s *agent.Spec) {
			spec.ID, spec.Name, spec.Command = s.ID, s.Name, s.Command
			*s = spec
		})
		said := a.saysAll()
		record := a.ends()
		hit := agent.LimitHit{}
		if record.Limit != nil {
			hit = *record.Limit
		}
		if record.Status != ending.status || hit.Name != ending.limit || ending.limit != "" && (hit.Value != ending.allowed(spec.Limits) || *hit.Peak < hit.Value) {
			t.Errorf("seed %d: the run was %s, limit %+v, with %+v", seed, record.Status, hit, spec.Limits)
		}
		if strings.HasPrefix(ending.script, tellAll) {
			for _, want := range expected(t, spec) {
				if !strings.Contains(said, want) {
					t.Errorf("seed %d: not %q in\n%.2000s", seed, want, said)
				}
			}
		}
		if most := spec.Limits.OutputBytes; most > 0 && int64(len(said)) > most {
			t.Errorf("seed %d: %d bytes of output with a limit of %d", seed, len(said), most)
		}
		if wrong := recordedNetwork(spec, record); wrong != "" {
			t.Errorf("seed %d: %s", seed, wrong)
		}
	}
}

// drawnSpec draws a run with any value in each field that can be observed.
func drawnSpec(t *rapid.T) agent.Spec {
	s := gatedSleeper()
	s.Egress.HostPorts, s.Egress.Publish = nil, nil
	if s.Network = rapid.SampledFrom(agent.NetworkModes).Draw(t, "network"); !s.Gated() {
		s.Egress = agent.Egress{}
	} else {
		s.Egress.Limits = agent.EgressLimits{Connections: rapid.IntRange(1, agent.ConnectionsCeiling).Draw(t, "connections"),
			PerSecond: rapid.IntRange(1, agent.PerSecondCeiling).Draw(t, "per second"), Bytes: rapid.Int64Range(0, agent.SizeCeiling).Draw(t, "bytes")}
	}
	s.Hostname = rapid.StringMatching(`([a-zA-Z0-9]([a-zA-Z0-9-]{0,20}[a-zA-Z0-9])?(\.[a-zA-Z0-9]{1,20}){0,2})?`).Draw(t, "hostname")
	s.Files.Tmpfs = []agent.Tmpfs{{Target: "/scratch", SizeBytes: rapid.Int64Range(agent.SizeFloor, 1<<30).Draw(t, "tmpfs"),
		Mode: rapid.Uint32Range(1, 0o1777).Draw(t, "mode")}}
	l := &s.Limits
	l.ShmBytes = rapid.Int64Range(agent.SizeFloor, 1<<30).Draw(t, "shm")
	l.MemorySwapBytes = rapid.OneOf(rapid.Just(int64(-1)), rapid.Just(l.MemoryBytes), rapid.Int64Range(l.MemoryBytes, 4*l.MemoryBytes)).Draw(t, "swap")
	l.StopGrace = time.Duration(rapid.Int64Range(0, int64(time.Second)).Draw(t, "grace"))
	l.Rlimits = drawnRlimits(t)
	return s
}

// leastRlimits are the drawn rlimits, with the least that a shell needs.
var leastRlimits = []agent.Rlimit{{Name: "core"}, {Name: "cpu", Soft: 10}, {Name: "data", Soft: 64 << 20}, {Name: "fsize"}, {Name: "locks"}, {Name: "memlock"},
	{Name: "msgqueue"}, {Name: "nice"}, {Name: "nofile", Soft: 64}, {Name: "nproc", Soft: 64}, {Name: "rss"}, {Name: "rtprio"}, {Name: "sigpending", Soft: 16}, {Name: "stack", Soft: 1 << 20}}

func drawnRlimits(t *rapid.T) (limits []agent.Rlimit) {
	facts := &probes{}
	for _, needed := range leastRlimits {
		name, least := needed.Name, needed.Soft
		own, _ := facts.hardLimit(name)
		if name != "nofile" && rapid.Bool().Draw(t, "without "+name) || own < least {
			continue
		}
		hard := rapid.OneOf(rapid.Uint64Range(least, min(own, 1<<40)), rapid.Just(own)).Draw(t, "hard "+name)
		limits = append(limits, agent.Rlimit{Name: name, Soft: rapid.Uint64Range(least, min(hard, 1<<40)).Draw(t, "soft "+name), Hard: hard})
	}
	return limits
}

// saysAll returns the agent's output up to its end.
func (a *liveAgent) saysAll() string {
	a.t.Helper()
	a.out.SetReadDeadline(time.Now().Add(soon))
	text, err := io.ReadAll(a.lines)
	if err != nil {
		a.t.Fatalf("its output has no end: %v", err)
	}
	return string(text)
}

// pages rounds a size to pages, as the kernel's file systems do.
func pages(bytes int64) int64 { return (bytes + pageSize - 1) / pageSize }

const pageSize = 4096

// expected returns the lines that an agent of a spec must print.
func expected(t *testing.T, s agent.Spec) []string {
	t.Helper()
	own, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	scratch := s.Files.Tmpfs[0]
	lines := []string{"hostname " + hostname(s), fmt.Sprintf("shm %d %d", pages(s.Limits.ShmBytes), pageSize),
		fmt.Sprintf("tmpfs %d %d", pages(scratch.SizeBytes), pageSize), fmt.Sprintf("mode %o", scratch.Mode)}
	text := func(n uint64) string {
		if n == agent.RlimitInfinity {
			return "unlimited"
		}
		return fmt.Sprint(n)
	}
	for _, r := range s.Limits.Rlimits {
		lines = append(lines, strings.ToUpper(r.Name)+" "+text(r.Soft)+" "+text(r.Hard))
	}
	for i := range lines {
		lines[i] += "\n"
	}
	lines = append(lines, "swap"+expectedSwap(t, s.Limits))
	if s.Network == agent.NetworkHost {
		lines = append(lines, "network "+own)
	}
	return lines
}

// expectedSwap is the kernel's figure for a limit of memory and swap; empty if the kernel does
// not count swap.
func expectedSwap(t *testing.T, l agent.Limits) string {
	t.Helper()
	host, err := detect()
	switch {
	case err != nil:
		t.Fatal(err)
	case !host.SwapAccounting():
		return "\n"
	case l.MemorySwapBytes < 0 && host.Mode() == cgroups.ModeV2:
		return " max\n"
	case l.MemorySwapBytes < 0:
		return fmt.Sprintf(" %d\n", math.MaxInt64/pageSize*pageSize) // PAGE_COUNTER_MAX
	case host.Mode() == cgroups.ModeV2:
		return fmt.Sprintf(" %d\n", (l.MemorySwapBytes-l.MemoryBytes)/pageSize*pageSize)
	}
	return fmt.Sprintf(" %d\n", l.MemorySwapBytes/pageSize*pageSize)
}

// recordedNetwork compares the record's network with the request.
func recordedNetwork(s agent.Spec, r agent.Record) string {
	_, gated := r.Enforced[agent.ControlEgress]
	_, own := r.Enforced[agent.ControlNetwork]
	switch {
	case gated != s.Gated() || own != (s.Network != agent.NetworkHost):
		return fmt.Sprintf("the network %s is recorded as %v", s.Network, r.Enforced)
	case s.Gated() && (r.Network == nil || r.Network.Mode != s.Network || r.Network.Limits != s.Egress.Limits):
		return fmt.Sprintf("of the network %s with %+v the record has %+v", s.Network, s.Egress.Limits, r.Network)
	case !s.Gated() && r.Network != nil:
		return fmt.Sprintf("without a gate the record has %+v", r.Network)
	}
	return ""
}
