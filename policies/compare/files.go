package compare

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"clove.run/clove/agent"
)

// mount is a directory or file of the host that an agent sees inside.
type mount struct {
	source, target string
	bind           agent.Bind // its rights
	field          string
}

// mounts are those whose sources appear as the agent's own files. Interpreters' prefixes appear
// with other owners, and are compared apart.
func mounts(f agent.Files) (all []mount) {
	if f.Workspace != "" && !slices.Contains(requested(f), agent.WorkspaceDir) {
		// It is not searched for credentials.
		all = append(all, mount{f.Workspace, agent.WorkspaceDir, agent.Bind{ReadOnly: true, CopyOnWrite: true, Secrets: true}, "files.workspace"})
	}
	for _, b := range f.Binds {
		all = append(all, mount{b.Source, b.Target, b, "files.binds.source"})
	}
	return all
}

func requested(f agent.Files) (targets []string) {
	for _, b := range f.Binds {
		targets = append(targets, b.Target)
	}
	for _, t := range f.Tmpfs {
		targets = append(targets, t.Target)
	}
	return targets
}

// covers are the places inside at which a mount hides what is there otherwise.
func covers(s agent.Spec) []string {
	targets := append(requested(s.Files), s.Files.Prefixes...)
	if s.Files.Workspace != "" {
		targets = append(targets, agent.WorkspaceDir)
	}
	if s.Files.Home != nil {
		targets = append(targets, agent.HomeDir)
	}
	if s.Kernel.HasSocket() {
		targets = append(targets, path.Dir(agent.SocketPath))
	}
	for _, place := range agent.WritablePlaces {
		if s.Files.ReadOnly && s.Files.StaysWritable(place) {
			targets = append(targets, place)
		}
	}
	return targets
}

// within compares clean paths.
func within(at, dir string) bool { return at == dir || strings.HasPrefix(at, dir+"/") }

// below is at, which is within from, as the same place within to.
func below(at, from, to string) string { return to + strings.TrimPrefix(at, from) }

// moreMounts are the mounts of one field, each of which must show a part of what the parent sees
// through one of its own.
func moreMounts(field string) func(pair) []Difference {
	return func(p pair) (all []Difference) {
		for _, m := range mounts(p.child.Files) {
			if m.field != field || m.bind == p.Shown && p.parent.Files.Execute == nil {
				continue
			}
			seen := func(have mount) bool {
				inside, ok := p.shows(have, m)
				return ok && may(have, m, p.parent.Files.Execute == nil) && p.listed(inside, m)
			}
			if !slices.ContainsFunc(mounts(p.parent.Files), seen) {
				all = append(all, more(true, sources(p.parent.Files), m)...)
			}
		}
		return all
	}
}

// String is the mount with its rights.
func (m mount) String() string {
	rights := "rw"
	switch {
	case m.field == "files.workspace":
		return m.source + " as its workspace"
	case m.bind.Secrets:
		rights = "copied, secrets too"
	case m.bind.CopyOnWrite:
		rights = "copied"
	case m.bind.ReadOnly:
		rights = "ro"
	}
	return fmt.Sprintf("%s at %s (%s)", m.source, m.target, rights)
}

func sources(f agent.Files) string {
	var texts []string
	for _, m := range mounts(f) {
		texts = append(texts, m.String())
	}
	return strings.Join(texts, ", ")
}

// shows reports whether the parent sees all of what the child's mount shows through have, and
// where inside. What another mount of the parent's hides from it, the child hides, too.
func (p pair) shows(have, m mount) (inside string, ok bool) {
	if !within(m.source, have.source) || m.source != have.source && (p.Beneath == nil || !p.Beneath(have.source, m.source)) {
		return "", false
	}
	inside = below(m.source, have.source, have.target)
	own := covers(p.child)
	for _, place := range covers(p.parent) {
		switch {
		case place != have.target && within(place, have.target) && within(inside, place):
			return "", false
		case place != inside && within(place, inside) && !slices.Contains(own, below(place, inside, m.target)):
			return "", false
		}
	}
	return inside, true
}

// may compares rights. A mount that is not copied shows other file systems below its source, and
// one that is copied without secrets is searched for credentials. free: the agent may execute
// what it writes.
func may(have, m mount, free bool) bool {
	b, h := m.bind, have.bind
	switch {
	case h.CopyOnWrite:
		return b.CopyOnWrite && (h.Secrets || !b.Secrets)
	case !h.ReadOnly:
		return true
	}
	return b.ReadOnly && (free || !b.CopyOnWrite)
}

// listed reports whether the lists of what may be read and executed, which name places inside,
// allow no more of the child's mount: it is at the parent's place, or no list matters there.
func (p pair) listed(inside string, m mount) bool {
	touches := func(entry string) bool {
		return strings.ContainsAny(entry, `*?[\`) || within(entry, m.target) || within(m.target, entry)
	}
	if inside != m.target && p.parent.Files.Execute != nil && slices.ContainsFunc(p.child.Files.Execute, touches) {
		return false
	}
	return p.parent.Files.MayRead(inside) || inside == m.target && !p.own(inside)
}

// own reports whether the child may read a place whatever its list says: below a tmpfs, for example.
func (p pair) own(inside string) bool {
	return slices.ContainsFunc(p.child.Files.OwnPlaces(), func(place string) bool { return within(inside, place) })
}

// baseDirs have what the host's base system shows, see package rootfs.
var baseDirs = []string{"/usr", "/opt", "/etc", "/var", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"}

// uncovered are the places at which the parent's mounts hide a part of the root, and the child's do
// not.
func uncovered(p pair) []Difference {
	own := covers(p.child)
	var open []string
	for _, place := range covers(p.parent) {
		root := p.parent.Files.Rootfs != "" || slices.ContainsFunc(baseDirs, func(dir string) bool { return within(place, dir) && place != "/var/tmp" })
		if root && !slices.ContainsFunc(own, func(over string) bool { return within(place, over) }) {
			open = append(open, place)
		}
	}
	return more(len(open) > 0, "a mount over "+strings.Join(open, ", "), "what the root has there")
}

func morePrefixes(p pair) (all []Difference) {
	for _, prefix := range p.child.Files.Prefixes {
		same := slices.Contains(p.parent.Files.Prefixes, prefix) && (p.parent.Files.MayRead(prefix) || !p.own(prefix))
		all = append(all, more(!same, strings.Join(p.parent.Files.Prefixes, ", "), prefix)...)
	}
	return all
}

// moreGit: without a name the start looks for the repository of the workspace, so only the same
// workspace has the same one.
func moreGit(p pair) []Difference {
	has, asks := p.parent.Files, p.child.Files
	same := has.Workspace == asks.Workspace && has.GitDir == asks.GitDir
	return more(asks.Workspace != "" && asks.GitDir != agent.NoGitDir && !same, orNone(has.GitDir)+" of "+orNone(has.Workspace), "the repository of "+asks.Workspace)
}

func moreHome(at func(agent.Home) string) func(pair) []Difference {
	return func(p pair) []Difference {
		has, asks := p.parent.Files.Home, p.child.Files.Home
		switch {
		case asks == nil:
			return nil
		case has == nil:
			return more(true, "", at(*asks))
		}
		return more(at(*has) != at(*asks), at(*has), at(*asks))
	}
}
