package agent

import (
	"path"
	"slices"
	"strings"

	"clove.run/clove/secrets"
)

// ownPlaces can be read under every list of Files.Read: what the agent has made itself, devices,
// processes, the loader's index of libraries, and secrets that it was given to read.
var ownPlaces = []string{"/tmp", "/var/tmp", "/home/agent", "/dev", "/proc", "/etc/ld.so.cache", secrets.PlainDir}

// RuleRead is the rule of a denial by Files.Read.
const RuleRead = "files.read"

// ValidateRead checks Read. Whether an entry exists, and the agent's program is beneath one, is
// looked at by the start.
func (s Spec) ValidateRead() error {
	const field = RuleRead
	list := s.Files.Read
	switch {
	case list == nil:
		return nil
	case len(list) == 0:
		return wrong(field, "name at least the folder of the agent's own program, such as /usr, or omit the list, and all may be read", "the list of what may be read is empty")
	case len(list) > entriesMost:
		return wrong(field, "name folders", "there are %d, and may be %d", len(list), entriesMost)
	case s.Seccomp.Profile == SeccompUnconfined:
		return wrong(field, "use the filter standard, strict or minimal, or omit the list", "a list of what may be read needs a filter: without one the agent may mount, and Landlock would refuse that")
	}
	for i, entry := range list {
		if err := s.Files.checkReadable(field, entry); err != nil {
			return err
		}
		if slices.Contains(list[:i], entry) {
			return wrong(field, "name it once", "%s is in the list twice", entry)
		}
	}
	return nil
}

// checkReadable accepts a clean path inside. The kernel holds files and folders, not their names,
// so a pattern would hold only what has such a name at the start.
func (f Files) checkReadable(field, entry string) error {
	if err := checkText(field, entry, pathMost); err != nil {
		return err
	}
	switch {
	case !path.IsAbs(entry) || path.Clean(entry) != entry:
		return wrong(field, "write an absolute path inside, for example /workspace/data", "%.64q is not an absolute path", entry)
	case strings.ContainsAny(entry, `*?[\`):
		return wrong(field, "name the folder", "%.64q is a pattern, and what is read is held by file and folder", entry)
	case entry == "/":
		return wrong(field, "name files and folders, or omit the list", "/ is the whole root")
	}
	for _, dir := range []string{"/proc", "/dev"} {
		if pathWithin(entry, dir) {
			return wrong(field, "leave it out", "%s is always readable: it has the agent's own processes, and devices that every agent has", dir)
		}
	}
	for _, b := range f.Binds {
		if !b.ReadOnly && entry != b.Target && pathWithin(entry, b.Target) {
			return wrong(field, "name "+b.Target+" as a whole, or show it read-only", "the agent changes what is at %s, and could put something else there for its next run", entry)
		}
	}
	return nil
}

// OwnPlaces are those that can be read whatever Files.Read lists, with all that is in them. A
// place where a volume is mounted is not the agent's own.
func (f Files) OwnPlaces() []string {
	own := slices.DeleteFunc(slices.Clone(ownPlaces), func(place string) bool {
		return slices.ContainsFunc(f.Binds, func(b Bind) bool { return pathWithin(place, b.Target) })
	})
	for _, t := range f.Tmpfs {
		own = append(own, t.Target)
	}
	return append(own, f.Keep...)
}

// MayRead reports whether the list, or a place of the agent's own, has a path inside in it. It
// compares texts, and follows no link. Without a list it is true.
func (f Files) MayRead(at string) bool {
	return f.Read == nil || slices.ContainsFunc(slices.Concat(f.Read, f.OwnPlaces()), func(place string) bool { return pathWithin(at, place) })
}

func pathWithin(at, dir string) bool { return at == dir || strings.HasPrefix(at, dir+"/") }
