package imports

import (
	"path"
	"slices"
	"strings"

	"clove.run/clove/agent"
	"clove.run/clove/internal/document"
	"clove.run/clove/policies/host"
)

// place is a path that a setting names.
type place struct {
	setting string
	path    string // clean: absolute on the host, or relative to the workspace
	inside  string // where it appears inside, if it is absolute
	pattern bool   // path is the directory in front of the first wildcard
	firm    bool   // a denial that beats what is allowed below it
}

// within reports whether one of two absolute places is the other or lies below it.
func (p place) within(q place) bool { return host.Within(p.path, q.path) }

func (p place) ofWorkspace() bool { return !path.IsAbs(p.path) }

// wildcards are those of any of the systems.
const wildcards = "*?[{"

// place reads a path: absolute, below the caller's home, or relative to the workspace. literal
// says that it has no wildcards.
func (r *reader) place(setting, text string, literal bool) (p place, ok bool) {
	p = place{setting: setting, path: text}
	if text == "" || strings.ContainsFunc(text, document.Unprintable) {
		r.refuse(setting, "it is no path")
		return p, false
	}
	if !literal {
		p.path = strings.TrimSuffix(p.path, "/**")
		if at := strings.IndexAny(p.path, wildcards); at >= 0 {
			p.pattern, p.path = true, p.path[:strings.LastIndex(p.path[:at], "/")+1]
		}
		if p.path == "" && strings.HasPrefix(text, "/") {
			p.path = "/"
		}
	}
	switch {
	case p.path == "~" || strings.HasPrefix(p.path, "~/"):
		if r.file.Home == "" {
			r.refuse(setting, "the home that ~ stands for is not known")
			return p, false
		}
		p.inside = path.Join(agentHome, p.path[1:])
		p.path = path.Join(r.file.Home, p.path[1:])
	case strings.HasPrefix(p.path, "~"):
		r.refuse(setting, "the home of another user is not known here: write the whole path")
		return p, false
	case path.IsAbs(p.path):
		p.path = path.Clean(p.path)
		p.inside = p.path
	default:
		p.path = path.Clean(p.path)
		if p.path == ".." || strings.HasPrefix(p.path, "../") {
			r.refuse(setting, "it leaves the workspace, and a policy does not know where that is: write the whole path")
			return p, false
		}
	}
	return p, true
}

// agentHome is the home inside, which is the run's own.
const agentHome = "/home/agent"

// base are directories of the host that appear inside, as rootfs shows them.
var base = []string{"/bin", "/etc", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/sbin", "/usr", "/var/lib/dpkg"}

// private are places that each run has for itself.
var private = []string{"/tmp", "/var/tmp", "/dev/shm"}

// secrets are files of /etc that are made anew for each run, or that are not copied, because
// not every user of the host may read them.
var secrets = []string{"/etc/gshadow", "/etc/shadow"}

// devices are always there, and writing to them is always allowed.
var devices = []string{"/dev/full", "/dev/null", "/dev/random", "/dev/stderr", "/dev/stdin", "/dev/stdout", "/dev/tty", "/dev/urandom", "/dev/zero"}

// below returns the directory of dirs that the path is or lies in; empty if it is none.
func below(p string, dirs []string) string {
	if at := slices.IndexFunc(dirs, func(dir string) bool { return host.Within(p, dir) }); at >= 0 {
		return dirs[at]
	}
	return ""
}

// shows returns a part of the base system that the path hides: one that it lies in, or that
// lies in it.
func shows(p string) string {
	if slices.Contains(secrets, p) {
		return ""
	}
	if dir := below(p, base); dir != "" {
		return dir
	}
	if at := slices.IndexFunc(base, func(dir string) bool { return host.Within(dir, p) }); at >= 0 {
		return base[at]
	}
	return ""
}

// cannotShow says why a path of the host is no directory for an agent; empty if it may be one.
func cannotShow(p place) string {
	switch {
	case p.pattern:
		return "a pattern is no directory: name the directory"
	case host.InKernel(p.path):
		return "it is the kernel's own"
	case below(p.path, base) != "":
		return "it belongs to the host's system"
	case slices.Contains(host.SharedDirs, p.path):
		return "it holds the files of many programs or users: name a directory in it"
	case p.inside == agentHome:
		return "it is the whole home: name a directory in it"
	case host.Within(p.inside, agent.WorkspaceDir):
		return "the workspace appears there"
	case strings.Contains(p.path, ":"):
		return "a volume cannot have a colon in its path"
	}
	return ""
}
