package compare

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"clove.run/clove/agent"
)

// Row is how one field of agent.Spec is compared.
type Row struct {
	Field string // its path in the spec's JSON: files.binds.source
	Kind  Kind
	Means string // what a child has at most, or why its value is not compared

	more    func(pair) []Difference
	inherit func(pair, *agent.Spec) // the parent's value, where the child leaves it out
	hint    string
}

// Kind says where a field is compared.
type Kind string

// The kinds.
const (
	Compared  Kind = "compared"  // here
	Together  Kind = "together"  // by the row of another field, which Means names
	Elsewhere Kind = "elsewhere" // with what is known only while the parent runs, by what Means names
	Free      Kind = "free"      // any value allows as much
)

// Deadline is the one row of no field.
const Deadline = "deadline"

// WholeField ends the path of a field that has one row for all that is in it.
const WholeField = ".*"

// Rows is every row, in the order of a spec.
var Rows = sync.OnceValue(func() []Row {
	return slices.Concat(process(), limits(), files(), network(), shared(), recorded(), detached())
})

func free(why string, fields ...string) (rows []Row) {
	for _, field := range fields {
		rows = append(rows, Row{Field: field, Kind: Free, Means: why})
	}
	return rows
}

func with(other string, fields ...string) (rows []Row) {
	for _, field := range fields {
		rows = append(rows, Row{Field: field, Kind: Together, Means: "with `" + other + "`"})
	}
	return rows
}

// bySetting is a row that policies/settings compares.
func bySetting(field, key, means string, inherit func(pair, *agent.Spec)) Row {
	return Row{Field: field, Kind: Compared, Means: means, more: setting(key), inherit: inherit}
}

func compared(field, means, hint string, compare func(pair) []Difference, inherit func(pair, *agent.Spec)) Row {
	return Row{Field: field, Kind: Compared, Means: means, more: compare, inherit: inherit, hint: hint}
}

const (
	identity = "names the child, and allows nothing"
	text     = "text for the child's own program; what it names is opened by other rows only"
	streams  = "where its streams lead; the agent gets no right by it"
)

func process() []Row {
	const as = "give it the parent's user"
	return slices.Concat(
		free(identity, "id", "name", "labels", "hostname"),
		free(text, "command", "env", "dir", "user.name", "user.home"),
		[]Row{
			compared("user.uid", "the parent's, because ids own files of the base system; any, if the parent is root inside with CAP_SETUID", as, moreID(func(u agent.User) uint32 { return u.UID }, "CAP_SETUID"), nil),
			compared("user.gid", "as `user.uid`, with CAP_SETGID", as, moreID(func(u agent.User) uint32 { return u.GID }, "CAP_SETGID"), nil),
			bySetting("cap_drop", "capabilities.drop", "as root inside, no capability that the parent lacks", inheritDrops),
			compared("clock_start_ns", "if the parent does not see the host's clocks, neither does the child; any start", "begin its clocks anywhere", func(p pair) []Difference {
				return more(p.parent.ClockStart != 0 && p.child.ClockStart == 0, "clocks of its own", "the host's clocks")
			}, absent(func(s *agent.Spec) *time.Duration { return &s.ClockStart })),
		},
		free("lines of its own /etc/hosts; what it may reach is in the rules", "hosts.name", "hosts.address"),
		free(streams, "terminal", "detached", "foreground", "stdin"),
		free("what is kept of it on the host; the audit log keeps each decision in any case", "remove"),
	)
}

func limits() []Row {
	const most = "at most the parent's; none only where the parent has none"
	return slices.Concat(
		[]Row{
			bySetting("limits.memory_bytes", "limits.memory", most, absent(func(s *agent.Spec) *int64 { return &s.Limits.MemoryBytes })),
			bySetting("limits.memory_swap_bytes", "limits.memory_swap", "at most as much swap beside its memory", func(_ pair, child *agent.Spec) {
				child.Limits.MemorySwapBytes = cmp.Or(child.Limits.MemorySwapBytes, child.Limits.MemoryBytes)
			}),
			bySetting("limits.cpus", "limits.cpus", most, absent(func(s *agent.Spec) *float64 { return &s.Limits.CPUs })),
			bySetting("limits.cpuset_cpus", "limits.cpuset", "some of the parent's CPUs", absent(func(s *agent.Spec) *string { return &s.Limits.CPUSet })),
			bySetting("limits.pids", "limits.pids", most, absent(func(s *agent.Spec) *int64 { return &s.Limits.Pids })),
		},
		with("limits.rlimits.hard", "limits.rlimits.name"),
		free("the agent itself may raise it to the hard limit", "limits.rlimits.soft"),
		[]Row{
			bySetting("limits.rlimits.hard", "ulimits", "for each limit of the parent's at most that", inheritRlimits),
			bySetting("limits.cpu_time_ns", "limits.cpu_time", most, absent(func(s *agent.Spec) *time.Duration { return &s.Limits.CPUTime })),
			bySetting("limits.wall_clock_ns", "limits.timeout", most, inheritTime),
			compared(Deadline, "no field: its time from now on ends before the parent's deadline", "", later, nil),
			bySetting("limits.stop_grace_ns", "limits.stop_timeout", "at most the parent's", nil),
		},
		free("what asks its own program to end; KILL follows in any case", "limits.stop_signal"),
		[]Row{
			bySetting("limits.output_bytes", "limits.output", most, absent(func(s *agent.Spec) *int64 { return &s.Limits.OutputBytes })),
			bySetting("limits.disk_bytes", "limits.disk", most, absent(func(s *agent.Spec) *int64 { return &s.Limits.DiskBytes })),
			bySetting("limits.shm_bytes", "limits.shm", most, absent(func(s *agent.Spec) *int64 { return &s.Limits.ShmBytes })),
		},
	)
}

func files() []Row {
	const (
		source = "files.binds.source"
		hint   = "show it what the parent sees, with the same or fewer rights"
		root   = "the parent's"
	)
	return slices.Concat(
		[]Row{
			bySetting("files.rootfs", "files.rootfs", root, nil),
			compared("files.workspace", "none, or a directory that the parent sees as a whole through its workspace or a bind; a copy on write reads only", hint, moreMounts("files.workspace"), nil),
			compared("files.git_dir", "the parent's for the parent's workspace; `none` for another", "write git_dir: none", moreGit, nil),
			bySetting("files.read_only", "files.root", "read-only, if the parent's is", func(p pair, child *agent.Spec) {
				child.Files.ReadOnly = child.Files.ReadOnly || p.parent.Files.ReadOnly
			}),
			bySetting("files.writable", "files.writable", "some of the parent's places", absentList(func(s *agent.Spec) *[]string { return &s.Files.Writable })),
			bySetting("files.execute", "files.execute", "entries of the parent's list, or what its patterns match", absentList(func(s *agent.Spec) *[]string { return &s.Files.Execute })),
			bySetting("files.read", "files.read", "what lies in entries of the parent's list", absentList(func(s *agent.Spec) *[]string { return &s.Files.Read })),
			compared("files.prefixes", "some of the parent's", "use the parent's interpreter", morePrefixes, nil),
			compared(source, "what the parent sees as a whole through its workspace or a bind, at or below the source, with the same or fewer rights: writable, read-only, copied; with secrets only from one with secrets", hint, moreMounts(source), nil),
		},
		with(source, "files.binds.read_only", "files.binds.copy_on_write", "files.binds.secrets"),
		[]Row{
			compared("files.binds.target", "any, if the parent may read all of the source and has no list of programs that matters there (`"+source+"`); what the parent's mounts hide of the root, the child's hide too", "mount the same there, or a tmpfs", uncovered, nil),
			bySetting("files.tmpfs.target", "files.tmpfs", "any on a writable root; on a read-only one the parent's", nil),
		},
		free("its pages count as the child's memory", "files.tmpfs.size_bytes"),
		free("of a directory of its own", "files.tmpfs.mode"),
		[]Row{
			compared("files.home.name", "none, or the parent's", "leave the kept home out", moreHome(func(h agent.Home) string { return h.Name }), nil),
			compared("files.home.folder", "as `files.home.name`", "leave the kept home out", moreHome(func(h agent.Home) string { return h.Folder }), nil),
			compared("files.keep", "some of the parent's, with its home", "leave the folder out", moreKept, nil),
			bySetting("files.landlock", "files.landlock", "required, if the parent's is", absent(func(s *agent.Spec) *string { return &s.Files.Landlock })),
			bySetting("seccomp.profile", "seccomp", "a filter that lets no call or argument through that the parent's stops; of two that cannot be compared neither", nil),
		},
		with("seccomp.profile", "seccomp.document"),
	)
}

func network() []Row {
	const most = "at most the parent's; none only where the parent has none"
	return slices.Concat(
		[]Row{
			bySetting("network", "network.mode", "the parent's mode or a narrower one", nil),
			compared("egress.rules.deny", "each denial of the parent's, unless the child's rules and grants open nothing that it denies", "deny it for the child, too", setting("network.deny"), inheritDenials),
			compared("egress.rules.target", "targets within those of the parent's rules; an address of this host only if the parent's rules name it", "allow what the parent's rules allow", moreTargets, nil),
		},
		free("says where a rule was given", "egress.rules.source"),
		[]Row{
			bySetting("egress.host_ports", "network.host_ports", "some of the parent's", nil),
			compared("egress.publish.host", "addresses and ports of the parent's", "publish no port", morePublished, nil),
		},
		free("a port of its own loopback", "egress.publish.port"),
		[]Row{
			bySetting("egress.dns", "network.dns", "some of the parent's", inheritDNS),
			bySetting("egress.limits.connections", "network.connections", most, absent(func(s *agent.Spec) *int { return &s.Egress.Limits.Connections })),
			bySetting("egress.limits.per_second", "network.rate", most, absent(func(s *agent.Spec) *int { return &s.Egress.Limits.PerSecond })),
			bySetting("egress.limits.bytes", "network.bytes", most, absent(func(s *agent.Spec) *int64 { return &s.Egress.Limits.Bytes })),
		},
	)
}

func shared() []Row {
	const callout = "none, or the parent's: it runs on the host as the owner"
	elsewhere := func(field, by string) Row { return Row{Field: field, Kind: Elsewhere, Means: by} }
	return []Row{
		bySetting("kernel.socket", "agent_socket", "none, if the parent has none", nil),
		elsewhere("kernel.grants", "derived from the parent's live grants (kernel/grant), which the owner may have revoked or added"),
		elsewhere("kernel.budgets", "counted in the parent's accounts (kernel/budget) when it is spent, where it has to fit"),
		bySetting("kernel.at_end", "at_end", "end, pause, refuse: no later one than the parent's", absent(func(s *agent.Spec) *string { return &s.Kernel.AtEnd })),
		bySetting("kernel.asks", "ask", "no more than the parent, and about tools no less, if it may call some", nil),
		bySetting("kernel.secrets", "secrets", "no secret that the parent may not use", nil),
		free("holds the child's own connections alone", "kernel.ask_hold_ns")[0],
		bySetting("kernel.on_denial", "on_denial", "ended or paused after no more refusals than the parent", absent(func(s *agent.Spec) *string { return &s.Kernel.OnDenial })),
		compared("kernel.on_warn", callout, "leave it out", noOther(func(s agent.Spec) string { return s.Kernel.OnWarn }), nil),
		compared("kernel.on_end", callout, "leave it out", noOther(func(s agent.Spec) string { return s.Kernel.OnEnd }), nil),
		compared("kernel.on_ask", callout, "leave it out", noOther(func(s agent.Spec) string { return s.Kernel.OnAsk }), nil),
		compared("kernel.on_ask_key", callout, "leave it out", noOther(func(s agent.Spec) string { return s.Kernel.OnAskKey }), nil),
		elsewhere("kernel.spawn_depth", "each run above allows so many levels below its children (kernel/spawn)"),
		compared("kernel.orphans", "its children end with it, if the parent's do", "leave it out", noOther(func(s agent.Spec) string { return s.Kernel.Orphans }), nil),
		free("ends the child alone, sooner", "kernel.idle_ns")[0],
		compared("kernel.namespace", "the parent's or one below it", "leave it out", moreNamespace, absent(func(s *agent.Spec) *string { return &s.Kernel.Namespace })),
		free("each line is a message, for which the child needs a grant", "kernel.stdout_to")[0],
		free("the child needs a grant for a name that it registers", "kernel.stdin_from")[0],
		free("one of a closed list of files in its home; calls of models need a grant", "kernel.model_setup")[0],
		compared("kernel.model_log", "its calls are logged, if the parent's are", "log its calls", unlogged, func(p pair, child *agent.Spec) {
			child.Kernel.ModelLog = child.Kernel.ModelLog || p.parent.Kernel.ModelLog && child.Kernel.HasModels()
		}),
	}
}

func recorded() []Row {
	return slices.Concat(
		free("says where its values came from, and decides nothing", "policy.name", "policy.sha256", "policy.widened", "policy.claimed", "manifest.name", "manifest.sha256"),
		free("is decided beside the run, and refuses and allows nothing", "shadow"+WholeField),
		[]Row{compared("learn", "only if the parent's is noted: the host keeps what is", "leave it out", switched(func(s agent.Spec) bool { return s.Learn }), nil)},
	)
}

func detached() []Row {
	const never = "leave it out"
	const again = "all its starts are within the deadline, the limits and the accounts of the parent, with which it ends"
	return []Row{
		free(again, "restart.policy")[0],
		free(again, "restart.max")[0],
		compared("schedule", "none, or the parent's: it would start after the parent's end", never, noOther(func(s agent.Spec) string { return s.Schedule }), nil),
		compared("keep_files", "only if the parent keeps its own", never, switched(func(s agent.Spec) bool { return s.KeepFiles }), nil),
		free("it only waits", "after")[0],
		free("a command in the child's own sandbox", "ready.command")[0],
		free("bounds the child alone", "ready.within_ns")[0],
		compared("priority", "at most the parent's", "give it the parent's priority", func(p pair) []Difference {
			return more(p.child.Priority > p.parent.Priority, p.parent.Priority, p.child.Priority)
		}, func(p pair, child *agent.Spec) {
			if child.Priority == 0 {
				child.Priority = min(0, p.parent.Priority)
			}
		}),
		compared("start_timeout_ns", "at most the parent's", "give it less time to start", func(p pair) []Difference {
			return more(p.child.StartBound() > p.parent.StartBound(), p.parent.StartBound(), p.child.StartBound())
		}, absent(func(s *agent.Spec) *time.Duration { return &s.StartTimeout })),
		bySetting("allow_unenforced", "allow_unenforced", "some of the controls that the parent may be without", nil),
	}
}
