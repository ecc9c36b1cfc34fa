package agent

import (
	"encoding/json"
	"errors"
	"math"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"
)

// whole is a spec that is valid everywhere.
func whole() Spec {
	return Spec{ID: "0123456789abcdef", Name: "a", Command: []string{"true"}, Env: []string{"PATH=/bin", "EMPTY="}, Dir: "/workspace",
		User: User{Name: "agent", UID: 1000, GID: 1000, Home: "/home/agent"}, Network: NetworkAllowlist, Seccomp: Seccomp{Profile: "standard"},
		Labels: map[string]string{"team": "a b"}, Hostname: "a.b-c", ClockStart: ClockStartCeiling, Schedule: "0 3 * * *", CapDrop: []string{"ALL", "CAP_CHOWN"},
		Hosts: []HostName{{"db.example", netip.MustParseAddr("10.0.0.5")}},
		Egress: Egress{Rules: []EgressRule{{Target: "pypi.org", Source: "--allow"}}, Limits: EgressLimits{Connections: 1024, PerSecond: 200},
			HostPorts: []uint16{80}, Publish: []PublishedPort{{Host: netip.MustParseAddrPort("127.0.0.1:0"), Port: 80}}, DNS: []netip.AddrPort{netip.MustParseAddrPort("9.9.9.9:53")}},
		Files: Files{Rootfs: "/srv/root", Workspace: "/srv/work", Prefixes: []string{"/opt/python"}, Binds: []Bind{{Source: "/srv/a", Target: "/a"}}, Tmpfs: []Tmpfs{{Target: "/b"}}},
		Limits: Limits{MemoryBytes: MemoryFloorBytes, MemorySwapBytes: -1, Pids: PidsFloor, DiskBytes: DiskFloorBytes, ShmBytes: SizeFloor,
			CPUs: 1.5, WallClock: time.Hour, StopSignal: 2, Rlimits: []Rlimit{{Name: "nofile", Soft: 1, Hard: RlimitInfinity}}}}
}

// refusals are changes that are invalid everywhere, one for each field.
var refusals = []struct {
	field  string
	change func(*Spec)
}{
	{"id", func(s *Spec) { s.ID = "" }},
	{"name", func(s *Spec) { s.Name = "../x" }},
	{"hostname", func(s *Spec) { s.Hostname = "a\nb" }},
	{"clock_start_ns", func(s *Spec) { s.ClockStart = -1 }},
	{"clock_start_ns", func(s *Spec) { s.ClockStart = ClockStartFloor - 1 }},
	{"clock_start_ns", func(s *Spec) { s.ClockStart = ClockStartCeiling + 1 }},
	{"policy.name", func(s *Spec) { s.Policy.Name = strings.Repeat("x", 1<<20) }},
	{"labels", func(s *Spec) { s.Labels["x"] = strings.Repeat("x", 1<<20) }},
	{"labels", func(s *Spec) { s.Labels["x"] = "a\u009bb" }},
	{"labels", func(s *Spec) { s.Labels["x=y"] = "" }},
	{"labels", func(s *Spec) {
		for i := range 20 {
			s.Labels[strings.Repeat("k", i+1)] = strings.Repeat("v", 1<<10)
		}
	}},
	{"command", func(s *Spec) { s.Command = nil }},
	{"command", func(s *Spec) { s.Command = []string{"a", "b\x00c"} }},
	{"command", func(s *Spec) { s.Command = []string{strings.Repeat("x", 128<<10)} }},
	{"env", func(s *Spec) { s.Env = []string{"NOVALUE"} }},
	{"env", func(s *Spec) { s.Env = []string{"=x"} }},
	{"user", func(s *Spec) { s.User.UID = MaxUser + 1 }},
	{"user.name", func(s *Spec) { s.User.Name = "a\nroot:x:0:0" }},
	{"user.home", func(s *Spec) { s.User.Home = "/home:x" }},
	{"dir", func(s *Spec) { s.Dir = "workspace" }},
	{"files.rootfs", func(s *Spec) { s.Files.Rootfs = "/srv/../root" }},
	{"files.binds", func(s *Spec) { s.Files.Binds[0].Source = "x" }},
	{"files", func(s *Spec) { s.Files.Binds[0].Target = "/proc/x" }},
	{"files", func(s *Spec) { s.Files.Tmpfs[0].Target = "/a" }},
	{"files.tmpfs", func(s *Spec) { s.Files.Tmpfs[0].SizeBytes = -1 }},
	{"files.writable", func(s *Spec) { s.Files.Writable = []string{"/tmp"} }},
	{"files.landlock", func(s *Spec) { s.Files.Landlock = "perhaps" }},
	{"files.landlock", func(s *Spec) { s.Files.Landlock, s.Seccomp.Profile = LandlockRequired, SeccompUnconfined }},
	{"seccomp.profile", func(s *Spec) { s.Seccomp.Profile = "" }},
	{"cap_drop", func(s *Spec) { s.CapDrop = []string{"CHOWN"} }},
	{"limits.stop_signal", func(s *Spec) { s.Limits.StopSignal = 9 }},
	{"limits.stop_signal", func(s *Spec) { s.Limits.StopSignal = 19 }},
	{"limits.stop_signal", func(s *Spec) { s.Limits.StopSignal = -1 }},
	{"limits.stop_signal", func(s *Spec) { s.Limits.StopSignal = 65 }},
	{"hosts", func(s *Spec) { s.Hosts[0].Name = "a b" }},
	{"hosts", func(s *Spec) { s.Hosts[0].Name = "" }},
	{"hosts", func(s *Spec) { s.Hosts[0].Address = netip.Addr{} }},
	{"hosts", func(s *Spec) { s.Hosts[0].Address = netip.MustParseAddr("fe80::1%eth0") }},
	{"hosts", func(s *Spec) { s.Hosts = slices.Repeat(s.Hosts[:1], entriesMost+1) }},
	{"cap_drop", func(s *Spec) { s.CapDrop = slices.Repeat([]string{"CAP_CHOWN"}, len(Capabilities)+1) }},
	{"network", func(s *Spec) { s.Network = "nonsense" }},
	{"network", func(s *Spec) { s.Network = "" }},
	{"egress.rules", func(s *Spec) { s.Egress.Rules[0].Target = "" }},
	{"egress.host_ports", func(s *Spec) { s.Egress.HostPorts[0] = 0 }},
	{"egress.publish", func(s *Spec) { s.Egress.Publish[0].Port = 0 }},
	{"egress.dns", func(s *Spec) { s.Egress.DNS[0] = netip.AddrPort{} }},
	{"egress.limits.connections", func(s *Spec) { s.Egress.Limits.Connections = 0 }},
	{"egress.limits.connections", func(s *Spec) { s.Egress.Limits.Connections = -1 }},
	{"egress.limits.per_second", func(s *Spec) { s.Egress.Limits.PerSecond = 0 }},
	{"egress.limits.bytes", func(s *Spec) { s.Egress.Limits.Bytes = -1 }},
	{"restart.policy", func(s *Spec) { s.Restart.Policy = "sometimes" }},
	{"restart.max", func(s *Spec) { s.Restart.Max = -1 }},
	{"start_timeout_ns", func(s *Spec) { s.StartTimeout = -1 }},
	{"start_timeout_ns", func(s *Spec) { s.StartTimeout = StartTimeoutFloor - 1 }},
	{"start_timeout_ns", func(s *Spec) { s.StartTimeout = StartTimeoutCeiling + 1 }},
	{"remove", func(s *Spec) { s.Remove, s.Restart.Policy, s.Schedule = true, RestartOnFailure, "" }},
	{"priority", func(s *Spec) { s.Priority = 1001 }},
	{"keep_files", func(s *Spec) { s.KeepFiles, s.Schedule = true, "" }},
	{"foreground", func(s *Spec) { s.Foreground, s.Schedule = true, "@hourly" }},
	{"foreground", func(s *Spec) { s.Foreground, s.Schedule, s.Restart.Policy = true, "", RestartAlways }},
	{"foreground", func(s *Spec) { s.Foreground, s.Schedule, s.After = true, "", []string{"first"} }},
	{"schedule", func(s *Spec) { s.Schedule = strings.Repeat("*", 1<<20) }},
	{"allow_unenforced", func(s *Spec) { s.AllowUnenforced = []string{"\x1b[31m"} }},
	{"limits.memory_bytes", func(s *Spec) { s.Limits.MemoryBytes = 0 }},
	{"limits.memory_bytes", func(s *Spec) { s.Limits.MemoryBytes = math.MaxInt64 }},
	{"limits.memory_swap_bytes", func(s *Spec) { s.Limits.MemorySwapBytes = 0 }},
	{"limits.memory_swap_bytes", func(s *Spec) { s.Limits.MemorySwapBytes = -2 }},
	{"limits.pids", func(s *Spec) { s.Limits.Pids = -1 }},
	{"limits.pids", func(s *Spec) { s.Limits.Pids = 0 }},
	{"limits.cpus", func(s *Spec) { s.Limits.CPUs = -2 }},
	{"limits.cpus", func(s *Spec) { s.Limits.CPUs = math.NaN() }},
	{"limits.cpus", func(s *Spec) { s.Limits.CPUs = math.Inf(1) }},
	{"limits.cpuset_cpus", func(s *Spec) { s.Limits.CPUSet = "0\n1" }},
	{"limits.cpu_time_ns", func(s *Spec) { s.Limits.CPUTime = -1 }},
	{"limits.wall_clock_ns", func(s *Spec) { s.Limits.WallClock = math.MaxInt64 }},
	{"limits.stop_grace_ns", func(s *Spec) { s.Limits.StopGrace = -1 }},
	{"limits.output_bytes", func(s *Spec) { s.Limits.OutputBytes = -1 }},
	{"limits.disk_bytes", func(s *Spec) { s.Limits.DiskBytes = 1 }},
	{"limits.shm_bytes", func(s *Spec) { s.Limits.ShmBytes = 0 }},
	{"limits.shm_bytes", func(s *Spec) { s.Limits.ShmBytes = math.MaxInt64 }},
	{"limits.rlimits", func(s *Spec) { s.Limits.Rlimits[0].Name = "files" }},
	{"limits.rlimits", func(s *Spec) { s.Limits.Rlimits[0].Hard = 0 }},
	{"limits.rlimits", func(s *Spec) { s.Limits.Rlimits = nil }},
	{"command", func(s *Spec) { s.Command = slices.Repeat([]string{strings.Repeat("x", 120<<10)}, 52) }},
	{"kernel.grants", func(s *Spec) { s.Kernel.Grants = slices.Repeat([]string{"tool:a"}, firstGrantsMost+1) }},
	{"kernel.budgets", func(s *Spec) { s.Kernel.Budgets = slices.Repeat([]string{"a=1"}, firstBudgetsMost+1) }},
	{"kernel", func(s *Spec) { s.Kernel.Grants = []string{strings.Repeat("x", grantTextMost+1)} }},
	{"kernel", func(s *Spec) { s.Kernel.Budgets = []string{"a=1\nb"} }},
	{"kernel", func(s *Spec) { s.Kernel.Socket, s.Network, s.Egress = true, NetworkHost, Egress{} }},
	{"kernel.at_end", func(s *Spec) { s.Kernel.AtEnd = "stop" }},
	{"kernel.on_warn", func(s *Spec) { s.Kernel.OnWarn = "ftp://a.example/" }},
	{"kernel.on_end", func(s *Spec) { s.Kernel.OnEnd = "a\nb" }},
	{"kernel.stdout_to", func(s *Spec) { s.Kernel.StdoutTo = "file:a" }},
	{"kernel.stdout_to", func(s *Spec) { s.Kernel.StdoutTo, s.Terminal = "mail:a", true }},
	{"kernel.stdin_from", func(s *Spec) { s.Kernel.StdinFrom = "mail:topic/a" }},
	{"kernel.stdin_from", func(s *Spec) { s.Kernel.StdinFrom, s.Stdin = "mail:a", true }},
	{"kernel.on_denial", func(s *Spec) { s.Kernel.OnDenial = "stop" }},
	{"kernel.model_setup", func(s *Spec) { s.Kernel.ModelSetup = "codex" }},
	{"kernel.model_setup", func(s *Spec) { s.Kernel.ModelSetup, s.Kernel.Grants = "vim", []string{"model:small"} }},
	{"kernel.namespace", func(s *Spec) { s.Kernel.Namespace = "/acme" }},
	{"kernel.namespace", func(s *Spec) { s.Kernel.Namespace = "acme//x" }},
	{"kernel.namespace", func(s *Spec) { s.Kernel.Namespace = "acme/../x" }},
	{"kernel.namespace", func(s *Spec) { s.Kernel.Namespace = strings.Repeat("abcdefg/", 40) + "x" }},
	{"spec", func(s *Spec) { s.Command = slices.Repeat([]string{strings.Repeat("x", 120<<10)}, 20) }},
	{"spec", func(s *Spec) { s.Env = slices.Repeat([]string{"X=" + strings.Repeat("\x01", 100<<10)}, 12) }},
}

func TestValidateNamesWhatIsWrong(t *testing.T) {
	t.Parallel()
	if err := whole().Validate(); err != nil {
		t.Fatalf("control: %v", err)
	}
	for _, r := range refusals {
		s := whole()
		r.change(&s)
		err := s.Validate()
		var refused *Error
		if !errors.As(err, &refused) || refused.Kind != KindInvalid || refused.Step != r.field || refused.Hint == "" || len(refused.Error()) > 400 {
			t.Errorf("%s: %v", r.field, err)
		}
	}
}

func TestValidateOfAnUpdate(t *testing.T) {
	t.Parallel()
	number := func(n int64) *int64 { return &n }
	cpus := func(n float64) *float64 { return &n }
	clock := func(d time.Duration) *time.Duration { return &d }
	for _, good := range []Update{{}, {MemoryBytes: number(64 << 20)}, {MemorySwapBytes: number(-1)}, {CPUs: cpus(0.5)}, {Pids: number(64)}, {WallClock: clock(0)}} {
		if err := good.Validate(); err != nil {
			t.Errorf("%+v: %v", good, err)
		}
	}
	for field, bad := range map[string]Update{"memory": {MemoryBytes: number(0)}, "swap": {MemorySwapBytes: number(0)}, "less than any swap": {MemorySwapBytes: number(-2)},
		"no cpus": {CPUs: cpus(0)}, "negative cpus": {CPUs: cpus(-1)}, "pids": {Pids: number(-1)}, "clock": {WallClock: clock(-1)}, "a long clock": {WallClock: clock(math.MaxInt64)},
		"a rule that breaks a line": {Rules: &[]EgressRule{{Target: "a.b", Source: "x\ny"}}}, "a rule of nothing": {Rules: &[]EgressRule{{}}}} {
		if err := bad.Validate(); KindOf(err) != KindInvalid || err == nil {
			t.Errorf("%s: %v", field, err)
		}
	}
}

// Limits of an OCI container may be absent, and lower than clove itself needs; the upper
// bounds are the same.
func TestValidateGiven(t *testing.T) {
	t.Parallel()
	for _, good := range []Limits{{}, {MemoryBytes: 1}, {MemoryBytes: 1 << 20, MemorySwapBytes: 1 << 20}, {MemorySwapBytes: 1 << 20}, {Pids: 1}, {CPUs: CPUsFloor}, {WallClock: 1}} {
		if err := good.ValidateGiven(); err != nil {
			t.Errorf("%+v: %v", good, err)
		}
	}
	for field, bad := range map[string]Limits{"limits.memory_bytes": {MemoryBytes: -1}, "limits.memory_swap_bytes": {MemoryBytes: 1 << 20, MemorySwapBytes: 1 << 19},
		"limits.pids": {Pids: -1}, "limits.cpus": {CPUs: math.Inf(1)}, "limits.cpu_time_ns": {CPUTime: -1}, "limits.wall_clock_ns": {WallClock: math.MaxInt64},
		"limits.shm_bytes": {ShmBytes: SizeCeiling + 1}} {
		var refused *Error
		if err := bad.ValidateGiven(); !errors.As(err, &refused) || refused.Step != field || refused.Hint == "" {
			t.Errorf("%s: %v", field, err)
		}
	}
}

// FuzzValidate: whatever a caller of the API sends, an accepted spec has limits, and no text
// with a line break.
func FuzzValidate(f *testing.F) {
	add := func(s Spec) {
		text, err := json.Marshal(s)
		if err == nil { // JSON cannot represent some numbers
			f.Add(text)
		}
	}
	add(whole())
	for _, r := range refusals {
		s := whole()
		r.change(&s)
		add(s)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var s Spec
		if json.Unmarshal(text, &s) != nil {
			return
		}
		err := s.Validate()
		if err != nil {
			if KindOf(err) != KindInvalid || len(err.Error()) > 1000 {
				t.Fatalf("%d bytes: %v", len(err.Error()), err)
			}
			return
		}
		l := s.Limits
		if l.MemoryBytes <= 0 || l.Pids <= 0 || l.DiskBytes <= 0 || l.ShmBytes <= 0 || l.MemorySwapBytes == 0 || l.CPUs < 0 || l.WallClock < 0 || l.OutputBytes < 0 {
			t.Fatalf("no limit: %+v", l)
		}
		for _, shown := range []string{s.Name, s.Hostname, s.User.Name, s.User.Home, s.Policy.Name, s.Schedule} {
			if strings.ContainsAny(shown, "\n\r\x1b\u009b") {
				t.Fatalf("%q", shown)
			}
		}
	})
}
