package agent

import (
	"fmt"
	"path"
	"slices"
)

// KeepMost is how many folders are kept with one home, those of earlier runs included.
const KeepMost = 16

// notKept are places inside at which no folder is kept, nor above or below them: the kernel's, those
// of the base system, and that of the agent's own socket. WritablePlaces are more of them.
var notKept = []string{"/proc", "/sys", "/dev", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/usr", "/opt", "/etc", "/var/lib/dpkg", path.Dir(SocketPath)}

// ValidateKeep checks Files.Keep: only an agent with a kept home has a name under which a folder is
// found again, and each folder is at a place of its own, so that what an earlier run left in it covers
// nothing else and nothing is mounted in it.
func (s Spec) ValidateKeep() error {
	const field = "files.keep"
	f := s.Files
	switch {
	case len(f.Keep) == 0:
		return nil
	case f.Home == nil:
		return wrong(field, "keep its home, too: home: kept in a document, else the flag home with a name", "%.256s is kept for an agent with a kept home only", f.Keep[0])
	case len(f.Keep) > KeepMost:
		return wrong(field, "name a folder that has them all", "there are %d folders, and may be %d", len(f.Keep), KeepMost)
	}
	taken := slices.Concat(notKept, WritablePlaces, f.Prefixes)
	for _, b := range f.Binds {
		taken = append(taken, b.Target)
	}
	for _, t := range f.Tmpfs {
		taken = append(taken, t.Target)
	}
	for _, folder := range f.Keep {
		if err := checkKept(field, folder, taken); err != nil {
			return err
		}
		taken = append(taken, folder)
	}
	return nil
}

func checkKept(field, folder string, taken []string) error {
	hint := "choose a place of its own, for example /memory"
	if err := checkPath(field, folder); err != nil {
		return wrong(field, hint, "%s", FailureOf(err).Message)
	}
	if err := checkText(field, folder, pathMost); err != nil {
		return wrong(field, hint, "%s", FailureOf(err).Message)
	}
	if folder == "/" {
		return wrong(field, hint, "/ is the whole root")
	}
	for _, place := range taken {
		problem := ""
		switch {
		case folder == place:
			problem = "something else is there"
		case pathWithin(folder, place):
			problem = "it is in " + place
		case pathWithin(place, folder):
			problem = place + " is in it"
		}
		if problem != "" {
			return wrong(field, hint, "%.256s cannot be kept: %s", folder, fmt.Sprintf("%.256s", problem))
		}
	}
	return nil
}

// KeptAt is the kept folder that is at a path inside or above it; empty: none.
func (f Files) KeptAt(at string) string {
	i := slices.IndexFunc(f.Keep, func(folder string) bool { return pathWithin(at, folder) })
	if i < 0 || path.Clean(at) != at {
		return ""
	}
	return f.Keep[i]
}
