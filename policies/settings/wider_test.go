package settings

import (
	"encoding/json"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/opencontainers/runtime-spec/specs-go"
	"pgregory.net/rapid"

	"clove.run/clove/agent"
	"clove.run/clove/egress"
	"clove.run/clove/seccomp"
)

func base() agent.Spec {
	return agent.Spec{
		User: agent.User{Name: "agent", UID: 1000, Home: "/home/agent"}, Network: agent.NetworkAllowlist, Seccomp: agent.Seccomp{Profile: "strict"},
		Egress: agent.Egress{Rules: []agent.EgressRule{{Target: "*.example.com"}, {Target: "bad.example.com", Deny: true}}, HostPorts: []uint16{80},
			Limits: agent.EgressLimits{Connections: 10, PerSecond: 10, Bytes: 1 << 20}},
		Limits: agent.Limits{MemoryBytes: 1 << 30, MemorySwapBytes: 1 << 30, Pids: 100, CPUs: 1, CPUSet: "0-2", CPUTime: time.Minute, WallClock: time.Minute,
			OutputBytes: 1 << 20, DiskBytes: 1 << 30, ShmBytes: 1 << 20, Rlimits: []agent.Rlimit{{Name: "nofile", Soft: 10, Hard: 20}}},
		Files:  agent.Files{ReadOnly: true, Writable: []string{"/tmp"}, Execute: []string{"/bin/sh", "/usr/bin/git*"}, Read: []string{"/usr", "/workspace/src"}, Landlock: agent.LandlockRequired, Binds: []agent.Bind{{Source: "/srv/a", Target: "/a", ReadOnly: true}, copied(".cargo"), copied("go")}},
		Kernel: agent.Kernel{Grants: []string{"tool:read*"}, Budgets: []string{"tokens=100"}, OnDenial: "end-after:3"},
	}
}

// copied is a folder of the home.
func copied(folder string) agent.Bind {
	return agent.Bind{Target: "/home/agent/" + folder, ReadOnly: true, CopyOnWrite: true}
}

// keyring is a filter of docker's format that allows little, but one call that strict refuses.
var keyring = []byte(`{"defaultAction": "SCMP_ACT_ERRNO", "syscalls": [{"names": ["read", "keyctl"], "action": "SCMP_ACT_ALLOW"}]}`)

// incomparable are changes that allow something else, and not only more.
var incomparable = []string{"files.rootfs: /srv/root instead of the host's base system", "seccomp: /srv/f.json, with keyctl instead of strict", "limits.cpuset: CPUs 1-3 instead of CPUs 0-2", "grants: tool:write instead of tool:read*",
	"budgets: tokens=100/day instead of tokens=100", "network.dns: 9.9.9.9:53 instead of none"}

// Each change allows more in one place, and the change back in none.
func TestWider(t *testing.T) {
	t.Parallel()
	for want, change := range map[string]func(*agent.Spec){
		"limits.memory: 2GiB instead of 1GiB":                          func(s *agent.Spec) { s.Limits.MemoryBytes, s.Limits.MemorySwapBytes = 2<<30, 2<<30 },
		"limits.memory_swap: 1GiB instead of 0B":                       func(s *agent.Spec) { s.Limits.MemorySwapBytes = 2 << 30 },
		"limits.memory_swap: no limit instead of 0B":                   func(s *agent.Spec) { s.Limits.MemorySwapBytes = -1 },
		"limits.cpus: no limit instead of 1":                           func(s *agent.Spec) { s.Limits.CPUs = 0 },
		"limits.cpuset: CPUs 1-3 instead of CPUs 0-2":                  func(s *agent.Spec) { s.Limits.CPUSet = "1-3" },
		"limits.cpuset: all instead of CPUs 0-2":                       func(s *agent.Spec) { s.Limits.CPUSet = "" },
		"limits.pids: 101 instead of 100":                              func(s *agent.Spec) { s.Limits.Pids++ },
		"limits.cpu_time: no limit instead of 1m0s":                    func(s *agent.Spec) { s.Limits.CPUTime = 0 },
		"limits.timeout: 2m0s instead of 1m0s":                         func(s *agent.Spec) { s.Limits.WallClock *= 2 },
		"limits.output: no limit instead of 1MiB":                      func(s *agent.Spec) { s.Limits.OutputBytes = 0 },
		"limits.disk: 2GiB instead of 1GiB":                            func(s *agent.Spec) { s.Limits.DiskBytes *= 2 },
		"limits.shm: 2MiB instead of 1MiB":                             func(s *agent.Spec) { s.Limits.ShmBytes *= 2 },
		"ulimits.nofile: 21 instead of 20":                             func(s *agent.Spec) { s.Limits.Rlimits = []agent.Rlimit{{Name: "nofile", Soft: 10, Hard: 21}} },
		"ulimits.nofile: no limit instead of 20":                       func(s *agent.Spec) { s.Limits.Rlimits = nil },
		"files.root: writable instead of read-only":                    func(s *agent.Spec) { s.Files.ReadOnly, s.Files.Writable, s.Files.Execute = false, nil, nil },
		"files.execute: any program instead of /bin/sh, /usr/bin/git*": func(s *agent.Spec) { s.Files.Execute = nil },
		"files.execute: /bin/bash instead of /bin/sh, /usr/bin/git*": func(s *agent.Spec) {
			s.Files.Execute = []string{"/bin/sh", "/bin/bash", "/usr/bin/git*", "/usr/bin/git-shell"}
		},
		"files.execute: /usr/bin/g* instead of /bin/sh, /usr/bin/git*":                  func(s *agent.Spec) { s.Files.Execute = []string{"/bin/sh", "/usr/bin/git*", "/usr/bin/g*"} },
		"files.execute: /bin/sh/x, /usr/bin/git[a-z] instead of /bin/sh, /usr/bin/git*": func(s *agent.Spec) { s.Files.Execute = append(s.Files.Execute, "/bin/sh/x", "/usr/bin/git[a-z]") },
		"files.read: all that appears inside instead of /usr, /workspace/src":           func(s *agent.Spec) { s.Files.Read = nil },
		"files.read: /workspace, /etc/ssl instead of /usr, /workspace/src":              func(s *agent.Spec) { s.Files.Read = []string{"/usr", "/tmp", "/workspace", "/etc/ssl"} },
		"files.read: /workspace/srcs instead of /usr, /workspace/src":                   func(s *agent.Spec) { s.Files.Read = append(s.Files.Read, "/workspace/srcs") },
		"files.writable: /workspace instead of /tmp":                                    func(s *agent.Spec) { s.Files.Writable = []string{"/workspace", "/tmp"} },
		"files.volumes: /srv/a:/a:rw instead of nothing of them":                        func(s *agent.Spec) { s.Files.Binds = []agent.Bind{{Source: "/srv/a", Target: "/a"}} },
		"files.home: .cache/uv, .cargo:secrets instead of .cargo, go": func(s *agent.Spec) {
			s.Files.Binds = []agent.Bind{copied(".cargo/bin"), copied(".cache/uv"), copied("go"), {Target: "/home/agent/.cargo", ReadOnly: true, CopyOnWrite: true, Secrets: true}}
		},
		"files.rootfs: /srv/root instead of the host's base system":  func(s *agent.Spec) { s.Files.Rootfs = "/srv/root" },
		"user: root inside instead of agent":                         func(s *agent.Spec) { s.User = agent.User{Name: "root"} },
		"seccomp: standard instead of strict":                        func(s *agent.Spec) { s.Seccomp.Profile = "standard" },
		"seccomp: /srv/f.json, with keyctl instead of strict":        func(s *agent.Spec) { s.Seccomp = agent.Seccomp{Profile: "/srv/f.json", Document: keyring} },
		"network.mode: public instead of allowlist":                  func(s *agent.Spec) { s.Network = agent.NetworkPublic },
		"network.allow: example.org instead of *.example.com":        func(s *agent.Spec) { s.Egress.Rules = append(s.Egress.Rules, agent.EgressRule{Target: "example.org"}) },
		"network.deny: not denied instead of bad.example.com denied": func(s *agent.Spec) { s.Egress.Rules = s.Egress.Rules[:1] },
		"network.host_ports: 81 instead of 80":                       func(s *agent.Spec) { s.Egress.HostPorts = []uint16{80, 81} },
		"network.allow: net:evil.org:443 instead of *.example.com":   func(s *agent.Spec) { s.Kernel.Grants = append(s.Kernel.Grants, "net:evil.org:443") },
		"network.dns: 9.9.9.9:53 instead of none":                    func(s *agent.Spec) { s.Egress.DNS = []netip.AddrPort{netip.MustParseAddrPort("9.9.9.9:53")} },
		"network.bytes: no limit instead of 1MiB (host)":             func(s *agent.Spec) { s.Network = agent.NetworkHost },
		"files.tmpfs: /workspace instead of none":                    func(s *agent.Spec) { s.Files.Tmpfs = []agent.Tmpfs{{Target: "/workspace"}} },
		"limits.stop_timeout: 1s instead of 0s":                      func(s *agent.Spec) { s.Limits.StopGrace = time.Second },
		"at_end: refuse instead of end":                              func(s *agent.Spec) { s.Kernel.AtEnd = "refuse" },
		"network.connections: 11 instead of 10":                      func(s *agent.Spec) { s.Egress.Limits.Connections++ },
		"network.bytes: no limit instead of 1MiB":                    func(s *agent.Spec) { s.Egress.Limits.Bytes = 0 },
		"models: model:gpt instead of none":                          func(s *agent.Spec) { s.Kernel.Grants = append(s.Kernel.Grants, "model:gpt") },
		"grants: tool:write instead of tool:read*":                   func(s *agent.Spec) { s.Kernel.Grants = []string{"tool:write"} },
		"budgets: tokens=101 instead of tokens=100":                  func(s *agent.Spec) { s.Kernel.Budgets = []string{"tokens=101"} },
		"budgets: no limit instead of tokens=100":                    func(s *agent.Spec) { s.Kernel.Budgets = nil },
		"budgets: tokens=100/day instead of tokens=100":              func(s *agent.Spec) { s.Kernel.Budgets = []string{"tokens=100/day"} },
		"on_denial: end-after:4 instead of end-after:3":              func(s *agent.Spec) { s.Kernel.OnDenial = "end-after:4" },
		"on_denial: deny instead of end-after:3":                     func(s *agent.Spec) { s.Kernel.OnDenial = "" },
		"allow_unenforced: seccomp instead of none":                  func(s *agent.Spec) { s.AllowUnenforced = []string{"seccomp"} },
		"files.landlock: where the host has it instead of required":  func(s *agent.Spec) { s.Files.Landlock = "" },
	} {
		a, b := base(), base()
		change(&b)
		found := Wider(a, b)
		if !slices.ContainsFunc(found, func(d Difference) bool { return d.String() == strings.TrimSuffix(want, " (host)") }) {
			t.Errorf("%s: %v", want, found)
		}
		place, _, _ := strings.Cut(want, ":")
		if back := Wider(b, a); slices.ContainsFunc(back, func(d Difference) bool { return d.Place == place }) && !slices.Contains(incomparable, want) {
			t.Errorf("%s: back %v", want, back)
		}
	}
}

func TestCapabilitiesOfRoot(t *testing.T) {
	t.Parallel()
	a, b := base(), base()
	a.User, b.User = agent.User{Name: "root"}, agent.User{Name: "root"}
	a.CapDrop, b.CapDrop = []string{"CAP_CHOWN", "CAP_KILL"}, []string{"CAP_KILL"}
	if found := Wider(a, b); len(found) != 1 || found[0].To != "CAP_CHOWN" {
		t.Error(found)
	}
	if found := Wider(b, a); len(found) != 0 {
		t.Error(found)
	}
	b.User, a.User.UID = agent.User{Name: "root"}, 1000 // also where the first is not root
	if found := Wider(a, b); len(found) != 2 || found[1].To != "CAP_CHOWN" {
		t.Error(found)
	}
	a.User.UID = 0
	a.CapDrop = []string{agent.AllCapabilities}
	if found := Wider(a, b); len(found) != 1 || !strings.Contains(found[0].To, "CAP_CHOWN") || strings.Contains(found[0].To, "CAP_KILL") {
		t.Error(found)
	}
}

// A denial counts where something that it denies is opened, by a rule or a grant.
func TestDenialsCountByMeaning(t *testing.T) {
	t.Parallel()
	for target, counts := range map[string]bool{"good.example.com": false, "bad.example.com:443": true, "*.example.com": true} {
		a, b := base(), base()
		b.Egress.Rules = []agent.EgressRule{{Target: target}}
		ruled := Wider(a, b)
		b.Network, b.Egress.Rules, b.Egress.HostPorts, b.Kernel.Grants = agent.NetworkNone, nil, nil, []string{"tool:read", "net:" + target}
		for _, found := range [][]Difference{ruled, Wider(a, b)} {
			if is := slices.ContainsFunc(found, func(d Difference) bool { return d.Place == "network.deny" }); is != counts {
				t.Errorf("%s: %v", target, found)
			}
		}
	}
}

// The host's name servers are others than those that were named, and a network of the host's own has
// all of its ports.
func TestNameServersAndPortsOfTheHost(t *testing.T) {
	t.Parallel()
	a, b := base(), base()
	a.Egress.DNS = []netip.AddrPort{netip.MustParseAddrPort("9.9.9.9:53")}
	if found := Wider(a, b); len(found) != 1 || found[0].String() != "network.dns: the host's instead of 9.9.9.9:53" {
		t.Error(found)
	}
	b.Network, b.Egress.Rules, b.Egress.HostPorts = agent.NetworkNone, nil, nil
	if found := Wider(a, b); len(found) != 0 {
		t.Error(found)
	}
	a, b = base(), base()
	a.Network, a.Egress = agent.NetworkHost, agent.Egress{Limits: a.Egress.Limits}
	b.Egress.DNS = []netip.AddrPort{netip.MustParseAddrPort("9.9.9.9:53")}
	for _, d := range Wider(a, b) {
		if d.Place == "network.dns" || d.Place == "network.host_ports" {
			t.Error(d)
		}
	}
}

// A filter without a default refusal lets calls through that no table names yet.
func TestCallsWithoutAName(t *testing.T) {
	t.Parallel()
	names := []string{}
	for _, d := range seccomp.Compare(nil, &specs.LinuxSeccomp{DefaultAction: specs.ActErrno}).OnlyA {
		names = append(names, d.Call)
	}
	document, err := json.Marshal(map[string]any{"defaultAction": "SCMP_ACT_ERRNO", "syscalls": []any{map[string]any{"names": names, "action": "SCMP_ACT_ALLOW"}}})
	if err != nil {
		t.Fatal(err)
	}
	a, b := base(), base()
	a.Seccomp, b.Seccomp, a.Files.Execute, a.Files.Read = agent.Seccomp{Profile: "/f.json", Document: document}, agent.Seccomp{Profile: "unconfined"}, nil, nil
	b.Files = a.Files
	if found := Wider(a, b); len(found) != 1 || !strings.Contains(found[0].To, "calls that it does not name") {
		t.Error(found)
	}
}

// drawSpec draws rules of few targets, so that they often meet.
func drawSpec(t *rapid.T, name string) agent.Spec {
	targets := []string{"example.com", "*.example.com", "a.example.com", "a.example.com:443", "10.0.0.0/8", "10.1.0.0/16:80", "public", "private", "203.0.113.7"}
	s := base()
	s.Network = rapid.SampledFrom([]string{agent.NetworkAllowlist, agent.NetworkPublic}).Draw(t, name+" mode")
	s.Egress.Rules = nil
	for _, target := range rapid.SliceOfNDistinct(rapid.SampledFrom(targets), 0, 3, rapid.ID).Draw(t, name+" allow") {
		s.Egress.Rules = append(s.Egress.Rules, agent.EgressRule{Target: target})
	}
	for _, target := range rapid.SliceOfNDistinct(rapid.SampledFrom(targets), 0, 2, rapid.ID).Draw(t, name+" deny") {
		s.Egress.Rules = append(s.Egress.Rules, agent.EgressRule{Target: target, Deny: true})
	}
	s.Limits.Pids = rapid.Int64Range(16, 20).Draw(t, name+" pids")
	s.Limits.CPUs = rapid.SampledFrom([]float64{0, 1, 2}).Draw(t, name+" cpus")
	s.Files.ReadOnly = true
	s.Files.Execute = rapid.SampledFrom([][]string{nil, {"/bin/sh"}, {"/bin/*"}, {"/bin/sh", "/bin/ls"}, {"/bin/[a-z]h"}, {"/usr/lib/x", "/bin/sh"}}).Draw(t, name+" execute")
	s.Limits.WallClock = rapid.SampledFrom([]time.Duration{0, 1, 2}).Draw(t, name+" timeout")
	s.Kernel.Budgets = rapid.SampledFrom([][]string{nil, {"tokens=1"}, {"tokens=2"}}).Draw(t, name+" budgets")
	return s
}

// Where nothing is wider, every connection that the second allows is one that the first does.
func TestNothingWiderReachesNothingMore(t *testing.T) {
	t.Parallel()
	probes := []struct {
		host string
		port uint16
	}{{"example.com", 443}, {"a.example.com", 80}, {"a.example.com", 443}, {"a.example.com", 8080}, {"b.a.example.com", 443}, {"other.test", 443},
		{"10.1.2.3", 80}, {"10.2.2.3", 443}, {"192.168.0.1", 80}, {"203.0.113.7", 80}, {"198.51.100.1", 9999}}
	compared := 0
	rapid.Check(t, func(t *rapid.T) {
		a, b := drawSpec(t, "a"), drawSpec(t, "b")
		if slices.ContainsFunc(Wider(a, b), func(d Difference) bool { return strings.HasPrefix(d.Place, "network.") }) {
			return
		}
		compared++
		for _, probe := range probes {
			if reaches(t, b, probe.host, probe.port) && !reaches(t, a, probe.host, probe.port) {
				t.Fatalf("%s:%d is reached by %+v only\n%+v", probe.host, probe.port, b.Egress.Rules, a.Egress.Rules)
			}
		}
	})
	if compared == 0 {
		t.Error("nothing was compared")
	}
}

func reaches(t *rapid.T, s agent.Spec, host string, port uint16) bool {
	rules, err := egress.New(egress.Config{Mode: s.Network, Rules: s.Egress.Rules})
	if err != nil {
		t.Fatal(err)
	}
	steps, err := rules.Why(host, port, egress.TCP)
	if err != nil {
		t.Fatal(err)
	}
	return steps[len(steps)-1].Verdict.Allowed
}

// The comparison is an order: nothing is wider than itself, and the way over a third is no
// detour.
func TestWiderIsAnOrder(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := drawSpec(t, "a"), drawSpec(t, "b"), drawSpec(t, "c")
		if found := Wider(a, a); len(found) > 0 {
			t.Fatal(found)
		}
		if len(Wider(a, b)) == 0 && len(Wider(b, c)) == 0 && len(Wider(a, c)) > 0 {
			t.Fatal(Wider(a, c))
		}
	})
}
