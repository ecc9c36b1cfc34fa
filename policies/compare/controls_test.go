package compare

import (
	"net/netip"
	"time"

	"clove.run/clove/agent"
)

// control is a pair of specs that differ in one field. given prepares the parent; each change is
// made to a child that is equal to it.
type control struct {
	field, setting  string
	given           func(*agent.Spec)
	wider, narrower []func(*agent.Spec)
	by              string // the row that finds it, where it is another
	now             *Now
}

type change = []func(*agent.Spec)

// number is the control of a limit. none: 0 is no limit.
func number[N int | int64 | float64 | time.Duration](field, key string, at func(*agent.Spec) *N, none bool) control {
	c := control{field: field, setting: key,
		wider:    change{func(s *agent.Spec) { *at(s)++ }, func(s *agent.Spec) { *at(s) *= 100 }},
		narrower: change{func(s *agent.Spec) { *at(s) -= *at(s) / 2 }, func(s *agent.Spec) {}}}
	if none {
		c.wider = append(c.wider, func(s *agent.Spec) { *at(s) = 0 })
	}
	return c
}

func anyValue(field string, changes ...func(*agent.Spec)) control {
	return control{field: field, wider: changes}
}

func rlimits(limits ...agent.Rlimit) func(*agent.Spec) {
	return func(s *agent.Spec) { s.Limits.Rlimits = limits }
}

// binds replaces the child's binds, and leaves tmpfs where the parent's hide something.
func binds(all ...agent.Bind) func(*agent.Spec) {
	return func(s *agent.Spec) { s.Files.Binds = all }
}

func rules(all ...agent.EgressRule) func(*agent.Spec) {
	return func(s *agent.Spec) { s.Egress.Rules = all }
}

func published(all ...string) func(*agent.Spec) {
	return func(s *agent.Spec) {
		s.Egress.Publish = nil
		for i, text := range all {
			s.Egress.Publish = append(s.Egress.Publish, agent.PublishedPort{Host: netip.MustParseAddrPort(text), Port: uint16(80 + i)})
		}
	}
}

func rootInside(s *agent.Spec) { s.User = agent.User{Name: "root", Home: "/root"} }

func anywhere(s *agent.Spec) { s.Files.Read, s.Files.Execute = nil, nil }

func controls() []control {
	bad, ex := agent.EgressRule{Target: "bad.example.com", Deny: true}, agent.EgressRule{Target: "*.example.com"}
	half := &Now{Time: time.Unix(50, 0), Deadline: time.Unix(80, 0), Beneath: now.Beneath}
	return []control{
		anyValue("id", func(s *agent.Spec) { s.ID = agent.NewID() }),
		anyValue("name", func(s *agent.Spec) { s.Name = "other" }),
		anyValue("labels", func(s *agent.Spec) { s.Labels = map[string]string{"a": "b"} }),
		anyValue("hostname", func(s *agent.Spec) { s.Hostname = "other" }),
		anyValue("command", func(s *agent.Spec) { s.Command = agent.RawStrings{"/bin/sh", "-c", "id"} }),
		anyValue("env", func(s *agent.Spec) { s.Env = agent.RawStrings{"UNKNOWN=1"} }),
		anyValue("dir", func(s *agent.Spec) { s.Dir = "/usr" }),
		anyValue("user.name", func(s *agent.Spec) { s.User.Name = "other" }),
		anyValue("user.home", func(s *agent.Spec) { s.User.Home = "/elsewhere" }),
		{field: "user.uid", wider: change{func(s *agent.Spec) { s.User.UID = 0 }, func(s *agent.Spec) { s.User.UID = 33 }}, narrower: change{func(*agent.Spec) {}}},
		{field: "user.uid", given: rootInside, wider: change{}, narrower: change{func(s *agent.Spec) { s.User.UID = 33 }}},
		{field: "user.uid", given: func(s *agent.Spec) { rootInside(s); s.CapDrop = []string{"CAP_SETUID"} }, wider: change{func(s *agent.Spec) { s.User.UID = 33 }}, narrower: change{func(s *agent.Spec) { s.User.GID = 33 }}},
		{field: "user.gid", wider: change{func(s *agent.Spec) { s.User.GID = 0 }}, narrower: change{func(*agent.Spec) {}}},
		{field: "user.gid", given: func(s *agent.Spec) { rootInside(s); s.CapDrop = []string{"ALL"} }, wider: change{func(s *agent.Spec) { s.User.GID = 33 }}, narrower: change{func(*agent.Spec) {}}},
		{field: "cap_drop", setting: "capabilities.drop", given: func(s *agent.Spec) { rootInside(s); s.CapDrop = []string{"CAP_CHOWN", "CAP_KILL"} }, wider: change{func(s *agent.Spec) { s.CapDrop = []string{"CAP_KILL"} }, func(s *agent.Spec) { s.CapDrop = nil }},
			narrower: change{func(s *agent.Spec) { s.CapDrop = []string{"ALL"} }, func(s *agent.Spec) { s.CapDrop = append(s.CapDrop, "CAP_FOWNER") }}},
		{field: "clock_start_ns", wider: change{func(s *agent.Spec) { s.ClockStart = 0 }}, narrower: change{func(s *agent.Spec) { s.ClockStart = 2 * time.Hour }}},
		anyValue("hosts.name", func(s *agent.Spec) { s.Hosts = []agent.HostName{{Name: "a", Address: netip.MustParseAddr("10.0.0.1")}} }),
		anyValue("hosts.address", func(s *agent.Spec) { s.Hosts = []agent.HostName{{Name: "a", Address: netip.MustParseAddr("10.0.0.2")}} }),
		anyValue("terminal", func(s *agent.Spec) { s.Terminal = true }),
		anyValue("detached", func(s *agent.Spec) { s.Detached = true }),
		anyValue("foreground", func(s *agent.Spec) { s.Foreground = true }),
		anyValue("stdin", func(s *agent.Spec) { s.Stdin = true }),
		anyValue("remove", func(s *agent.Spec) { s.Remove = true }),

		{field: "limits.memory_bytes", setting: "limits.memory", wider: change{func(s *agent.Spec) { s.Limits.MemoryBytes += 1 << 20; s.Limits.MemorySwapBytes += 1 << 20 }}, narrower: change{func(s *agent.Spec) { s.Limits.MemoryBytes -= 1 << 20; s.Limits.MemorySwapBytes -= 1 << 20 }}},
		{field: "limits.memory_swap_bytes", setting: "limits.memory_swap", wider: change{func(s *agent.Spec) { s.Limits.MemorySwapBytes++ }, func(s *agent.Spec) { s.Limits.MemorySwapBytes = -1 }}, narrower: change{func(s *agent.Spec) { s.Limits.MemorySwapBytes = s.Limits.MemoryBytes }}},
		number("limits.cpus", "limits.cpus", func(s *agent.Spec) *float64 { return &s.Limits.CPUs }, true),
		{field: "limits.cpuset_cpus", setting: "limits.cpuset", wider: change{func(s *agent.Spec) { s.Limits.CPUSet = "" }, func(s *agent.Spec) { s.Limits.CPUSet = "2-3" }}, narrower: change{func(s *agent.Spec) { s.Limits.CPUSet = "0,2" }}},
		number("limits.pids", "limits.pids", func(s *agent.Spec) *int64 { return &s.Limits.Pids }, false),
		{field: "limits.rlimits.name", wider: change{rlimits(agent.Rlimit{Name: "core", Hard: 20})}, narrower: change{rlimits(agent.Rlimit{Name: "nofile", Hard: 20}, agent.Rlimit{Name: "core"})}},
		anyValue("limits.rlimits.soft", rlimits(agent.Rlimit{Name: "nofile", Soft: 20, Hard: 20})),
		{field: "limits.rlimits.hard", setting: "ulimits", wider: change{rlimits(agent.Rlimit{Name: "nofile", Hard: 21}), rlimits(agent.Rlimit{Name: "nofile", Hard: agent.RlimitInfinity}), rlimits()}, narrower: change{rlimits(agent.Rlimit{Name: "nofile", Hard: 19})}},
		number("limits.cpu_time_ns", "limits.cpu_time", func(s *agent.Spec) *time.Duration { return &s.Limits.CPUTime }, true),
		number("limits.wall_clock_ns", "limits.timeout", func(s *agent.Spec) *time.Duration { return &s.Limits.WallClock }, true),
		{field: Deadline, now: half, given: func(s *agent.Spec) { s.Limits.WallClock = time.Minute }, wider: change{func(*agent.Spec) {}, func(s *agent.Spec) { s.Limits.WallClock = 31 * time.Second }}, narrower: change{func(s *agent.Spec) { s.Limits.WallClock = 30 * time.Second }}},
		number("limits.stop_grace_ns", "limits.stop_timeout", func(s *agent.Spec) *time.Duration { return &s.Limits.StopGrace }, false),
		anyValue("limits.stop_signal", func(s *agent.Spec) { s.Limits.StopSignal = 2 }),
		number("limits.output_bytes", "limits.output", func(s *agent.Spec) *int64 { return &s.Limits.OutputBytes }, true),
		number("limits.disk_bytes", "limits.disk", func(s *agent.Spec) *int64 { return &s.Limits.DiskBytes }, false),
		number("limits.shm_bytes", "limits.shm", func(s *agent.Spec) *int64 { return &s.Limits.ShmBytes }, false),

		{field: "files.rootfs", setting: "files.rootfs", wider: change{func(s *agent.Spec) { s.Files.Rootfs = "/srv/root" }}, narrower: change{func(*agent.Spec) {}}},
		{field: "files.workspace", wider: change{func(s *agent.Spec) { s.Files.Workspace = "/srv" }, func(s *agent.Spec) { s.Files.Workspace = "/srv/wsx" }, func(s *agent.Spec) { s.Files.Workspace = "/home/u/.cargo" }},
			narrower: change{func(s *agent.Spec) { s.Files.Workspace = "" }, func(s *agent.Spec) { s.Files.Workspace = "/srv/ws/src" }}},
		{field: "files.workspace", given: anywhere, wider: change{func(s *agent.Spec) { s.Files.Workspace = "/srv/b" }}, narrower: change{func(s *agent.Spec) { s.Files.Workspace = "/srv/a/x" }, func(s *agent.Spec) { s.Files.Workspace = "/srv/w" }}},
		{field: "files.workspace", now: &Now{}, wider: change{func(s *agent.Spec) { s.Files.Workspace = "/srv/ws/src" }}, narrower: change{func(*agent.Spec) {}}},
		{field: "files.git_dir", wider: change{func(s *agent.Spec) { s.Files.GitDir = "" }, func(s *agent.Spec) { s.Files.GitDir = "/srv/repo" }}, narrower: change{func(*agent.Spec) {}, func(s *agent.Spec) { s.Files.Workspace = "/srv/ws/src" }}},
		{field: "files.git_dir", given: func(s *agent.Spec) { s.Files.GitDir = "" }, wider: change{func(s *agent.Spec) { s.Files.Workspace = "/srv/ws/src" }}, narrower: change{func(s *agent.Spec) { s.Files.GitDir = agent.NoGitDir }}},
		{field: "files.read_only", setting: "files.root", given: func(s *agent.Spec) { s.Files.Execute, s.Files.Writable = nil, nil }, wider: change{func(s *agent.Spec) { s.Files.ReadOnly = false }}, narrower: change{func(*agent.Spec) {}}},
		{field: "files.writable", setting: "files.writable", wider: change{func(s *agent.Spec) { s.Files.Writable = append(s.Files.Writable, "/dev/shm") }, func(s *agent.Spec) { s.Files.Writable = nil }}, narrower: change{func(s *agent.Spec) { s.Files.Writable = []string{"/tmp"} }}},
		{field: "files.execute", setting: "files.execute", wider: change{func(s *agent.Spec) { s.Files.Execute = append(s.Files.Execute, "/bin/bash") }, func(s *agent.Spec) { s.Files.Execute = nil }}, narrower: change{func(s *agent.Spec) { s.Files.Execute = []string{"/bin/sh"} }}},
		{field: "files.read", setting: "files.read", wider: change{func(s *agent.Spec) { s.Files.Read = append(s.Files.Read, "/opt") }, func(s *agent.Spec) { s.Files.Read = nil }}, narrower: change{func(s *agent.Spec) { s.Files.Read = []string{"/usr/lib"} }}},
		{field: "files.prefixes", wider: change{func(s *agent.Spec) { s.Files.Prefixes = append(s.Files.Prefixes, "/opt/other") }}, narrower: change{func(*agent.Spec) {}}},
		{field: "files.binds.source", wider: change{
			binds(agent.Bind{Source: "/srv", Target: "/a", ReadOnly: true}), binds(agent.Bind{Source: "/srv/ab", Target: "/a", ReadOnly: true}),
			binds(agent.Bind{Source: "/etc/shadow", Target: "/s", ReadOnly: true}), binds(agent.Bind{Source: "/srv/w/x", Target: "/x"}), // /w is in no list of what may be read
		}, narrower: change{binds(), binds(agent.Bind{Source: "/srv/a/x", Target: "/a/x", ReadOnly: true}), binds(agent.Bind{Source: "/srv/a/x", Target: "/x", ReadOnly: true}), binds(agent.Bind{Source: "/srv/w/x", Target: "/w/x"})}},
		{field: "files.binds.source", given: func(s *agent.Spec) {
			anywhere(s)
			s.Files.Tmpfs = append(s.Files.Tmpfs, agent.Tmpfs{Target: "/a/secret"})
		},
			wider: change{func(s *agent.Spec) { s.Files.Tmpfs = s.Files.Tmpfs[:1] }, binds(agent.Bind{Source: "/srv/a/secret", Target: "/a/secret/in", ReadOnly: true}), binds(agent.Bind{Source: "/srv/a/secret/key", Target: "/key", ReadOnly: true}),
				binds(agent.Bind{Source: "/srv/a", Target: "/b", ReadOnly: true})},
			narrower: change{binds(agent.Bind{Source: "/srv/a/open", Target: "/b", ReadOnly: true})}},
		// A tmpfs makes everything below it a place of the agent's own, which no list keeps from it.
		{field: "files.binds.source", given: func(s *agent.Spec) {
			s.Files.ReadOnly, s.Files.Writable, s.Files.Execute, s.Files.Prefixes, s.Files.Tmpfs = false, nil, nil, nil, nil
			s.Files.Read, s.Files.Binds[0].Target = []string{"/usr"}, "/d/a"
		}, wider: change{func(s *agent.Spec) { s.Files.Tmpfs = []agent.Tmpfs{{Target: "/d"}} }}, narrower: change{func(s *agent.Spec) { s.Files.Tmpfs = []agent.Tmpfs{{Target: "/e"}} }}},
		{field: "files.prefixes", given: func(s *agent.Spec) {
			s.Files.ReadOnly, s.Files.Writable, s.Files.Execute, s.Files.Tmpfs, s.Files.Binds = false, nil, nil, nil, nil
		}, wider: change{func(s *agent.Spec) { s.Files.Tmpfs = []agent.Tmpfs{{Target: "/opt"}} }}, narrower: change{func(s *agent.Spec) { s.Files.Tmpfs = []agent.Tmpfs{{Target: "/e"}} }}},
		{field: "files.binds.source", now: &Now{}, given: anywhere, wider: change{binds(agent.Bind{Source: "/srv/w/x", Target: "/x"})}, narrower: change{binds(agent.Bind{Source: "/srv/w", Target: "/x"})}},
		// A file of clove's own is shown read-only whatever the parent sees, unless that has a list of its programs.
		{field: "files.binds.source", now: &Now{Shown: agent.Bind{Source: "/lib/own", Target: "/opt/own", ReadOnly: true}}, given: anywhere, wider: change{
			binds(agent.Bind{Source: "/lib/own", Target: "/opt/own"}), binds(agent.Bind{Source: "/lib/own", Target: "/x", ReadOnly: true}), binds(agent.Bind{Source: "/lib", Target: "/opt/own", ReadOnly: true}),
		}, narrower: change{binds(agent.Bind{Source: "/lib/own", Target: "/opt/own", ReadOnly: true})}},
		{field: "files.binds.source", now: &Now{Shown: agent.Bind{Source: "/lib/own", Target: "/opt/own", ReadOnly: true}}, wider: change{binds(agent.Bind{Source: "/lib/own", Target: "/opt/own", ReadOnly: true})}, narrower: change{binds()}},
		{field: "files.binds.read_only", wider: change{binds(agent.Bind{Source: "/srv/a", Target: "/a"})}, narrower: change{binds(agent.Bind{Source: "/srv/w", Target: "/w", ReadOnly: true})}},
		{field: "files.binds.copy_on_write", wider: change{binds(agent.Bind{Source: "/home/u/.cargo", Target: "/home/agent/.cargo", ReadOnly: true}), binds(agent.Bind{Source: "/srv/a", Target: "/a", ReadOnly: true, CopyOnWrite: true})},
			narrower: change{binds(agent.Bind{Source: "/srv/w", Target: "/w", ReadOnly: true, CopyOnWrite: true}), binds(agent.Bind{Source: "/home/u/.cargo/bin", Target: "/home/agent/.cargo/bin", ReadOnly: true, CopyOnWrite: true})}},
		{field: "files.binds.secrets", wider: change{binds(agent.Bind{Source: "/home/u/.cargo", Target: "/home/agent/.cargo", ReadOnly: true, CopyOnWrite: true, Secrets: true})},
			narrower: change{binds(agent.Bind{Source: "/srv/ws/x", Target: "/workspace/x", ReadOnly: true, CopyOnWrite: true, Secrets: true})}},
		{field: "files.binds.target", given: func(s *agent.Spec) { s.Files.Binds[0].Target = "/usr/share/a" }, wider: change{binds()},
			narrower: change{binds(agent.Bind{Source: "/srv/a/x", Target: "/usr/share", ReadOnly: true})}},
		{field: "files.binds.target", given: func(s *agent.Spec) { s.Files.Tmpfs = append(s.Files.Tmpfs, agent.Tmpfs{Target: "/opt"}) }, wider: change{func(s *agent.Spec) { s.Files.Tmpfs = s.Files.Tmpfs[:1]; s.Files.Prefixes = nil }}, narrower: change{func(s *agent.Spec) { s.Files.Prefixes = nil }}},
		{field: "files.binds.target", by: "files.binds.source", wider: change{binds(agent.Bind{Source: "/srv/a", Target: "/usr/bin", ReadOnly: true})}, narrower: change{binds(agent.Bind{Source: "/srv/a", Target: "/elsewhere", ReadOnly: true})}},
		{field: "files.tmpfs.target", setting: "files.tmpfs", wider: change{func(s *agent.Spec) { s.Files.Tmpfs = append(s.Files.Tmpfs, agent.Tmpfs{Target: "/srv"}) }}, narrower: change{func(*agent.Spec) {}}},
		anyValue("files.tmpfs.size_bytes", func(s *agent.Spec) { s.Files.Tmpfs[0].SizeBytes = 1 << 40 }),
		anyValue("files.tmpfs.mode", func(s *agent.Spec) { s.Files.Tmpfs[0].Mode = 0o700 }),
		{field: "files.home.name", wider: change{func(s *agent.Spec) { s.Files.Home.Name = "other" }}, narrower: change{func(s *agent.Spec) { s.Files.Home = nil }}},
		{field: "files.home.folder", wider: change{func(s *agent.Spec) { s.Files.Home.Folder = "/home/u" }}, narrower: change{func(*agent.Spec) {}}},
		{field: "files.keep", wider: change{func(s *agent.Spec) { s.Files.Keep = append(s.Files.Keep, "/other") }, func(s *agent.Spec) { s.Files.Keep = []string{"/memory/below"} }}, narrower: change{func(s *agent.Spec) { s.Files.Keep = nil }}},
		{field: "files.landlock", setting: "files.landlock", wider: change{func(s *agent.Spec) { s.Files.Landlock = "" }}, narrower: change{func(*agent.Spec) {}}},
		{field: "seccomp.profile", setting: "seccomp", wider: change{func(s *agent.Spec) { s.Seccomp.Profile = "standard" }}, narrower: change{func(s *agent.Spec) { s.Seccomp.Profile = "minimal" }}},
		{field: "seccomp.document", wider: change{document("read", "keyctl"), func(s *agent.Spec) { s.Seccomp.Document = []byte("{") }}, narrower: change{document("read", "write")}},

		{field: "network", setting: "network.mode", given: func(s *agent.Spec) { s.Egress.Rules = nil }, wider: change{func(s *agent.Spec) { s.Network = agent.NetworkPublic }}, narrower: change{func(s *agent.Spec) { s.Network, s.Egress.DNS = agent.NetworkNone, nil }}},
		{field: "egress.rules.deny", setting: "network.deny", wider: change{rules(ex), rules(agent.EgressRule{Target: "bad.example.com:443"}), rules(ex, agent.EgressRule{Target: "bad.example.com:443", Deny: true}),
			func(s *agent.Spec) {
				s.Egress.Rules = nil
				s.Kernel.Grants = append(s.Kernel.Grants, "net:bad.example.com")
			}},
			narrower: change{rules(agent.EgressRule{Target: "good.example.com"}), rules(ex, agent.EgressRule{Target: "*.example.com", Deny: true})}},
		{field: "egress.rules.target", wider: change{rules(agent.EgressRule{Target: "example.com"}, bad), rules(agent.EgressRule{Target: "a.example.com:22"}, bad), rules(agent.EgressRule{Target: "public"}, bad)},
			narrower: change{rules(bad), rules(agent.EgressRule{Target: "*.a.example.com:443"}, bad)}},
		anyValue("egress.rules.source", func(s *agent.Spec) { s.Egress.Rules[0].Source = "elsewhere" }),
		{field: "egress.host_ports", setting: "network.host_ports", wider: change{func(s *agent.Spec) { s.Egress.HostPorts = []uint16{22} }}, narrower: change{func(s *agent.Spec) { s.Egress.HostPorts = []uint16{81} }}},
		{field: "egress.publish.host", wider: change{published("127.0.0.1:8081"), published("0.0.0.0:8080"), published("127.0.0.1:0", "127.0.0.1:0"), published("0.0.0.0:0")}, narrower: change{published(), published("127.0.0.1:0", "127.0.0.1:8080")}},
		{field: "egress.publish.host", given: published("0.0.0.0:8080"), wider: change{published("[::1]:8080")}, narrower: change{published("127.0.0.1:8080")}},
		anyValue("egress.publish.port", func(s *agent.Spec) { s.Egress.Publish[0].Port = 9 }),
		{field: "egress.dns", setting: "network.dns", wider: change{func(s *agent.Spec) { s.Egress.DNS = nil }, func(s *agent.Spec) { s.Egress.DNS = []netip.AddrPort{address("6.6.6.6:53")} }}, narrower: change{func(*agent.Spec) {}}},
		number("egress.limits.connections", "network.connections", func(s *agent.Spec) *int { return &s.Egress.Limits.Connections }, true),
		number("egress.limits.per_second", "network.rate", func(s *agent.Spec) *int { return &s.Egress.Limits.PerSecond }, true),
		number("egress.limits.bytes", "network.bytes", func(s *agent.Spec) *int64 { return &s.Egress.Limits.Bytes }, true),

		{field: "kernel.socket", setting: "agent_socket", given: func(s *agent.Spec) { s.Kernel = agent.Kernel{} }, wider: change{func(s *agent.Spec) { s.Kernel.Socket = true }}, narrower: change{func(*agent.Spec) {}}},
		anyValue("kernel.grants", func(s *agent.Spec) { s.Kernel.Grants = append(s.Kernel.Grants, "tool:write", "net:other.test") }),
		anyValue("kernel.budgets", func(s *agent.Spec) { s.Kernel.Budgets = nil }, func(s *agent.Spec) { s.Kernel.Budgets = []string{"tokens=101"} }),
		{field: "kernel.at_end", setting: "at_end", wider: change{func(s *agent.Spec) { s.Kernel.AtEnd = "pause" }, func(s *agent.Spec) { s.Kernel.AtEnd = "refuse" }}, narrower: change{func(s *agent.Spec) { s.Kernel.AtEnd = "end" }}},
		{field: "kernel.asks", setting: "ask", wider: change{func(s *agent.Spec) { s.Kernel.Asks = []string{agent.AskNet, "other"} }}, narrower: change{func(s *agent.Spec) { s.Kernel.Asks = nil }, func(s *agent.Spec) { s.Kernel.Asks = []string{agent.AskTool} }}},
		{field: "kernel.asks", setting: "ask", given: func(s *agent.Spec) { s.Kernel.Asks = []string{agent.AskTool + "=2"} },
			wider:    change{func(s *agent.Spec) { s.Kernel.Asks = nil }, func(s *agent.Spec) { s.Kernel.Asks = []string{agent.AskTool} }},
			narrower: change{func(s *agent.Spec) { s.Kernel.Asks, s.Kernel.Grants = nil, nil }, func(s *agent.Spec) { s.Kernel.Asks = []string{agent.AskTool + "=3"} }}},
		{field: "kernel.secrets", setting: "secrets", given: func(s *agent.Spec) {
			s.Kernel.Asks, s.Kernel.Secrets, s.Kernel.Grants = []string{agent.AskSecret}, []string{"TOKEN:env=T", "OTHER:env=O"}, []string{"secret:OTHER"}
		}, wider: change{func(s *agent.Spec) { s.Kernel.Asks = nil }}, // people are not asked about TOKEN
			narrower: change{func(s *agent.Spec) { s.Kernel.Asks, s.Kernel.Secrets = nil, []string{"OTHER:file=/t"} }}},
		{field: "kernel.secrets", setting: "secrets", wider: change{func(s *agent.Spec) { s.Kernel.Secrets = []string{"TOKEN:env=T", "OTHER:env=O"} }, func(s *agent.Spec) { s.Kernel.Secrets = []string{"TOKEN:plain"} }}, narrower: change{func(s *agent.Spec) { s.Kernel.Secrets = nil }, func(s *agent.Spec) { s.Kernel.Secrets = []string{"TOKEN:file=/t"} }}},
		anyValue("kernel.ask_hold_ns", func(s *agent.Spec) { s.Kernel.AskHold = time.Hour }, func(s *agent.Spec) { s.Kernel.AskHold = 0 }),
		{field: "kernel.on_denial", setting: "on_denial", wider: change{func(s *agent.Spec) { s.Kernel.OnDenial = "" }, func(s *agent.Spec) { s.Kernel.OnDenial = "end-after:4" }}, narrower: change{func(s *agent.Spec) { s.Kernel.OnDenial = "end" }}},
		{field: "kernel.on_warn", wider: change{func(s *agent.Spec) { s.Kernel.OnWarn = "rm" }}, narrower: change{func(s *agent.Spec) { s.Kernel.OnWarn = "" }}},
		{field: "kernel.on_ask", wider: change{func(s *agent.Spec) { s.Kernel.OnAsk = "rm" }}, narrower: change{func(s *agent.Spec) { s.Kernel.OnAsk = "" }}},
		{field: "kernel.on_ask_key", wider: change{func(s *agent.Spec) { s.Kernel.OnAskKey = "/other" }}, narrower: change{func(s *agent.Spec) { s.Kernel.OnAskKey = "" }}},
		{field: "kernel.on_end", wider: change{func(s *agent.Spec) { s.Kernel.OnEnd = "rm" }}, narrower: change{func(s *agent.Spec) { s.Kernel.OnEnd = "" }}},
		anyValue("kernel.spawn_depth", func(s *agent.Spec) { s.Kernel.SpawnDepth = 3 }),
		{field: "kernel.orphans", wider: change{func(s *agent.Spec) { s.Kernel.Orphans = "keep" }}, narrower: change{func(s *agent.Spec) { s.Kernel.Orphans = "" }}},
		anyValue("kernel.idle_ns", func(s *agent.Spec) { s.Kernel.Idle = time.Hour }, func(s *agent.Spec) { s.Kernel.Idle = 0 }),
		{field: "kernel.namespace", wider: change{func(s *agent.Spec) { s.Kernel.Namespace = "" }, func(s *agent.Spec) { s.Kernel.Namespace = "teams" }}, narrower: change{func(s *agent.Spec) { s.Kernel.Namespace = "team/a" }}},
		anyValue("kernel.stdout_to", func(s *agent.Spec) { s.Kernel.StdoutTo = "mail:other" }),
		anyValue("kernel.stdin_from", func(s *agent.Spec) { s.Kernel.StdinFrom = "mail:other,json" }),
		anyValue("kernel.model_setup", func(s *agent.Spec) { s.Kernel.ModelSetup = agent.ModelSetups()[0] }),
		{field: "kernel.model_log", wider: change{func(s *agent.Spec) { s.Kernel.ModelLog = false }}, narrower: change{func(s *agent.Spec) { s.Kernel.ModelLog, s.Kernel.Grants = false, []string{"tool:read"} }}},

		anyValue("policy.name", func(s *agent.Spec) { s.Policy.Name = "other" }),
		anyValue("policy.sha256", func(s *agent.Spec) { s.Policy.SHA256 = "other" }),
		anyValue("policy.widened", func(s *agent.Spec) { s.Policy.Widened = []string{"x"} }),
		anyValue("policy.claimed", func(s *agent.Spec) { s.Policy.Claimed = "other" }),
		anyValue("manifest.name", func(s *agent.Spec) { s.Manifest.Name = "other" }),
		anyValue("manifest.sha256", func(s *agent.Spec) { s.Manifest.SHA256 = "other" }),
		anyValue("shadow"+WholeField, func(s *agent.Spec) { s.Shadow = &agent.Shadow{Network: agent.NetworkHost} }),
		{field: "learn", wider: change{func(s *agent.Spec) { s.Learn = true }}, narrower: change{func(*agent.Spec) {}}},

		anyValue("restart.policy", func(s *agent.Spec) { s.Restart.Policy = agent.RestartAlways }),
		anyValue("restart.max", func(s *agent.Spec) { s.Restart.Max = 4 }, func(s *agent.Spec) { s.Restart.Max = 0 }),
		{field: "schedule", wider: change{func(s *agent.Spec) { s.Schedule = "@hourly" }}, narrower: change{func(*agent.Spec) {}}},
		{field: "schedule", given: func(s *agent.Spec) { s.Schedule = "@daily" }, wider: change{func(s *agent.Spec) { s.Schedule = "@hourly" }}, narrower: change{func(s *agent.Spec) { s.Schedule = "" }}},
		{field: "keep_files", wider: change{func(s *agent.Spec) { s.KeepFiles = true }}, narrower: change{func(*agent.Spec) {}}},
		anyValue("after", func(s *agent.Spec) { s.After = []string{"other"} }),
		anyValue("ready.command", func(s *agent.Spec) { s.Ready.Command = []string{"true"} }),
		anyValue("ready.within_ns", func(s *agent.Spec) { s.Ready.Within = time.Hour }),
		{field: "priority", wider: change{func(s *agent.Spec) { s.Priority++ }}, narrower: change{func(s *agent.Spec) { s.Priority-- }}},
		{field: "start_timeout_ns", wider: change{func(s *agent.Spec) { s.StartTimeout = 21 * time.Second }, func(s *agent.Spec) { s.StartTimeout = 0 }}, narrower: change{func(s *agent.Spec) { s.StartTimeout = time.Second }}},
		{field: "allow_unenforced", setting: "allow_unenforced", given: func(s *agent.Spec) { s.AllowUnenforced = []string{"disk", "shm"} }, wider: change{func(s *agent.Spec) { s.AllowUnenforced = []string{"seccomp"} }}, narrower: change{func(s *agent.Spec) { s.AllowUnenforced = []string{"shm"} }}},
	}
}

func document(calls ...string) func(*agent.Spec) {
	return func(s *agent.Spec) {
		text := `{"defaultAction": "SCMP_ACT_ERRNO", "syscalls": [{"names": [`
		for i, call := range calls {
			if i > 0 {
				text += ", "
			}
			text += `"` + call + `"`
		}
		s.Seccomp = agent.Seccomp{Profile: "/srv/filter.json", Document: []byte(text + `], "action": "SCMP_ACT_ALLOW"}]}`)}
	}
}
