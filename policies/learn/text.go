package learn

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"clove.run/clove/agent"
	"clove.run/clove/internal/document"
)

// text writes the document. Values that the extended document has, too, are left out, but for
// those that were learned.
func (l *learner) text() []byte {
	w := &document.Writer{}
	l.head(w)
	w.Line(0, "version: 1")
	w.Line(0, "name: %s", document.Quoted(l.doc.Name))
	w.Line(0, "description: %s", document.Quoted(l.doc.Description))
	w.Line(0, "extends: %s", document.Quoted(l.doc.Extends))
	if len(l.doc.Widen) > 0 {
		w.Line(0, "widen:")
		for _, place := range slices.Sorted(maps.Keys(l.doc.Widen)) {
			w.Line(1, "%s: %s", place, document.Quoted(l.doc.Widen[place]))
		}
	}
	l.limits(w)
	l.files(w)
	l.identity(w)
	l.calls(w)
	l.network(w)
	l.list(w, 0, "allow_unenforced", l.doc.AllowUnenforced)
	return w.Bytes()
}

// head says what the document was made from, and what is not in it.
func (l *learner) head(w *document.Writer) {
	for _, r := range l.seen.Runs {
		if !r.Failed() {
			w.Comment("learned from the run %s, which ended well", r.Name)
			continue
		}
		w.Comment("LEARNED FROM A RUN THAT FAILED: %s ended as %s, with exit status %d; what it did not come to is not allowed", r.Name, r.Status, r.ExitCode)
	}
	for _, why := range l.seen.Incomplete {
		w.Comment("INCOMPLETE: %s", why)
	}
	w.Comment("another run may take another path: learn several, and fold them with clove policy learn --merge")
	w.Comment("not learned: variables, grants, budgets and published ports; give them with the flags of clove run")
	l.executed(w)
	if l.unread != "" {
		w.Comment("no list of what may be read: %s", l.unread)
	}
}

// value writes a key that has one, unless it is carried over and the parent has the same.
func (l *learner) value(w *document.Writer, depth int, key, place string, value, parent string) {
	why, learned := l.why[place]
	if value == "" || value == parent && !learned {
		return
	}
	w.Line(depth, "%s: %s%s", key, plain(value), comment(why))
}

// plain quotes what YAML would read as something else than the text.
func plain(value string) string {
	if strings.IndexFunc(value, func(c rune) bool {
		return c != '-' && c != '.' && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z')
	}) >= 0 {
		return document.Quoted(value)
	}
	return value
}

// comment is a comment behind a value.
func comment(why string) string {
	if why == "" {
		return ""
	}
	return " # " + cut(why, 400)
}

func (l *learner) limits(w *document.Writer) {
	own, parent := l.doc.Limits, l.parent.Limits
	w.Line(0, "limits:")
	l.value(w, 1, "memory", "limits.memory", string(own.Memory), string(parent.Memory))
	l.value(w, 1, "memory_swap", "limits.memory_swap", string(own.MemorySwap), string(parent.MemorySwap))
	l.value(w, 1, "cpus", "limits.cpus", string(own.CPUs), string(parent.CPUs))
	l.value(w, 1, "cpuset", "limits.cpuset", own.CPUSet, parent.CPUSet)
	l.value(w, 1, "pids", "limits.pids", string(own.Pids), string(parent.Pids))
	l.value(w, 1, "cpu_time", "limits.cpu_time", string(own.CPUTime), string(parent.CPUTime))
	l.value(w, 1, "timeout", "limits.timeout", string(own.Timeout), string(parent.Timeout))
	l.value(w, 1, "stop_timeout", "limits.stop_timeout", string(own.StopTimeout), string(parent.StopTimeout))
	l.value(w, 1, "output", "limits.output", string(own.Output), string(parent.Output))
	l.value(w, 1, "disk", "limits.disk", string(own.Disk), string(parent.Disk))
	l.value(w, 1, "shm", "limits.shm", string(own.Shm), string(parent.Shm))
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(l.doc.Ulimits)) {
		why, learned := l.why["ulimits."+name]
		if value := l.doc.Ulimits[name]; learned || value != l.parent.Ulimits[name] {
			lines = append(lines, name+": "+plain(string(value))+comment(why))
		}
	}
	if len(lines) > 0 {
		w.Line(0, "ulimits:")
	}
	for _, line := range lines {
		w.Line(1, "%s", line)
	}
}

func (l *learner) files(w *document.Writer) {
	w.Line(0, "files:")
	l.value(w, 1, "root", "files.root", l.doc.Files.Root, "")
	l.listed(w, 1, "writable", "files.writable.", l.doc.Files.Writable)
	if !slices.Equal(l.doc.Files.Execute, l.parent.Files.Execute) {
		l.listed(w, 1, "execute", "files.execute.", l.doc.Files.Execute)
	}
	if !slices.Equal(l.doc.Files.Read, l.parent.Files.Read) {
		l.listed(w, 1, "read", "files.read.", l.doc.Files.Read)
	}
	if len(l.doc.Files.Volumes) > 0 && !slices.Equal(l.doc.Files.Volumes, l.parent.Files.Volumes) {
		l.listed(w, 1, "volumes", "files.volumes.", l.doc.Files.Volumes)
	}
	if !slices.Equal(l.doc.Files.Tmpfs, l.parent.Files.Tmpfs) {
		l.list(w, 1, "tmpfs", l.doc.Files.Tmpfs)
	}
	l.value(w, 1, "rootfs", "files.rootfs", l.doc.Files.Rootfs, l.parent.Files.Rootfs)
}

func (l *learner) identity(w *document.Writer) {
	l.value(w, 0, "user", "user", l.doc.User, l.parent.User)
	if drop := l.doc.Capabilities.Drop; len(drop) > 0 && !slices.Equal(drop, l.parent.Capabilities.Drop) {
		w.Line(0, "capabilities:")
		l.list(w, 1, "drop", drop)
	}
}

// calls names the filter, and why each of its groups is in it.
func (l *learner) calls(w *document.Writer) {
	for _, g := range l.needs.Groups {
		w.Comment("system calls, %s: %s %s used; minimal does without: %s", g.Name, strings.Join(g.Used, " "), were(len(g.Used)), g.Reason)
	}
	l.value(w, 0, "seccomp", "seccomp", l.doc.Seccomp, l.parent.Seccomp)
}

func were(n int) string {
	if n == 1 {
		return "was"
	}
	return "were"
}

func (l *learner) network(w *document.Writer) {
	own, parent := l.doc.Network, l.parent.Network
	w.Line(0, "network:")
	w.Line(1, "mode: %s%s", own.Mode, comment(l.why["network.mode"]))
	l.listed(w, 1, "allow", "network.allow.", own.Allow)
	for _, target := range l.refused {
		w.Line(1, "# refused in the run, and not allowed here: %s", document.Shown(target))
	}
	if own.Mode == agent.NetworkAllowlist {
		l.list(w, 1, "deny", own.Deny)
		l.list(w, 1, "dns", own.DNS)
		l.value(w, 1, "connections", "network.connections", string(own.Connections), string(parent.Connections))
		l.value(w, 1, "rate", "network.rate", string(own.Rate), string(parent.Rate))
		l.value(w, 1, "bytes", "network.bytes", string(own.Bytes), string(parent.Bytes))
	}
	if len(own.HostPorts) > 0 {
		w.Line(1, "host_ports:")
		for _, port := range own.HostPorts {
			w.Line(2, "- %d", port)
		}
	}
}

func (l *learner) list(w *document.Writer, depth int, key string, items []string) {
	l.listed(w, depth, key, "", items)
}

// listed writes a list, each item with its comment.
func (l *learner) listed(w *document.Writer, depth int, key, place string, items []string) {
	if len(items) == 0 {
		return
	}
	w.Line(depth, "%s:", key)
	for _, item := range items {
		why := ""
		if place != "" {
			why = l.why[place+item]
		}
		w.Line(depth+1, "- %s%s", document.Quoted(item), comment(why))
	}
}

// String is an observation in one line.
func (o Observation) String() string {
	return fmt.Sprintf("%d programs, %d files written, %d read, %d system calls beyond minimal, %d targets", len(o.Executed), len(o.Written), len(o.Read), len(o.Calls), len(o.Targets))
}
