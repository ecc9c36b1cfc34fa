package rootfs

import (
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"
)

// entryKind is the file type of an entry.
type entryKind string

const (
	kindDir  entryKind = "dir"
	kindFile entryKind = "file"
	kindLink entryKind = "link"
)

// entry is one name of the skeleton, the lowest layer of the root.
type entry struct {
	Path     string
	Kind     entryKind
	Mode     uint32 // permissions with the sticky bit; unused for a link
	UID, GID uint32 // inside
	Data     string // a file's content, a link's target
	From     string // the host file with the content, if Data has not
	Stamp    string // identifies the state of From
}

// String is what newTemplate hashes, so whatever changes a template must show in it. The
// content of a generated file does not: in a template such a file is constant, and what
// differs between runs is written for each run (personal).
func (e entry) String() string {
	switch e.Kind {
	case kindLink:
		return fmt.Sprintf("link %s -> %s", e.Path, e.Data)
	case kindFile:
		text := fmt.Sprintf("file %s %04o %d:%d", e.Path, e.Mode, e.UID, e.GID)
		if e.From != "" {
			return text + " from " + e.From + " " + e.Stamp
		}
		return fmt.Sprintf("%s %d bytes", text, len(e.Data))
	default:
		return fmt.Sprintf("dir %s %04o %d:%d", e.Path, e.Mode, e.UID, e.GID)
	}
}

// skeleton returns the allowlist of names in a root over the host's base, parents before
// children: those that are the same for every run on this host. A name that is neither in
// it nor in an overlay does not exist inside.
func (f hostInfo) skeleton() []entry {
	known := make(map[string]entry, 2*(len(f.Etc)+len(f.Base)+len(f.Links)))
	dir := func(path string, mode uint32) { known[path] = entry{Path: path, Kind: kindDir, Mode: mode} }
	for _, e := range f.Etc {
		known[e.Path] = e
	}
	for _, path := range f.Base {
		dir(path, 0o755)
	}
	for path, link := range f.Links {
		known[path] = entry{Path: path, Kind: kindLink, Data: link}
	}
	for path, link := range map[string]string{"/etc/mtab": "../proc/self/mounts", "/var/lock": "/run/lock", "/var/run": "/run"} {
		known[path] = entry{Path: path, Kind: kindLink, Data: link}
	}
	// su and runuser fail if it is missing, or if it requests more than
	// the sandbox's own limits, as a host's may.
	known["/etc/security/limits.conf"] = entry{Path: "/etc/security/limits.conf", Kind: kindFile, Mode: 0o644,
		Data: "# The sandbox has its limits already.\n"}
	// Mount points, and directories that apt and debconf expect to exist.
	for _, path := range []string{"/dev", "/etc", "/home", "/proc", "/run", "/sys", "/var/cache/apt/archives/partial",
		"/var/cache/debconf", "/var/lib/apt/lists/partial", "/var/lib/misc", "/var/log/apt", "/var/spool"} {
		dir(path, 0o755)
	}
	for _, path := range []string{"/run/lock", "/tmp", "/var/tmp"} {
		dir(path, 0o1777)
	}
	dir("/root", 0o700)
	return withParents(known)
}

// personal are the names of the skeleton that differ between runs. skeleton has their parents.
func personal(cfg Config, f hostInfo) []entry {
	homeUID, homeGID := agentIDs(cfg.AgentUID, cfg.AgentGID)
	entries := append(etcGenerated(cfg, f),
		entry{Path: agentHome, Kind: kindDir, Mode: 0o755, UID: homeUID, GID: homeGID},
		entry{Path: workspaceDir, Kind: kindDir, Mode: 0o755, UID: cfg.AgentUID, GID: cfg.AgentGID})
	// An interpreter or a repository below /root needs that directory to be accessible.
	if slices.ContainsFunc(f.Prefixes, func(p source) bool { return within(p.Path, "/root") }) ||
		f.Repository != nil && within(f.Repository.Inside, "/root") {
		entries = append(entries, entry{Path: "/root", Kind: kindDir, Mode: 0o755})
	}
	return entries
}

// rootfsSkeleton lies above a caller's root. It has the directories that clove mounts on,
// so that nothing in that root can take their place.
func rootfsSkeleton() []entry {
	known := map[string]entry{"/tmp": {Path: "/tmp", Kind: kindDir, Mode: 0o1777}}
	for _, path := range rootfsDirs {
		known[path] = entry{Path: path, Kind: kindDir, Mode: 0o755}
	}
	return withParents(known)
}

// rootfsDirs must be directories or be missing in a caller's root.
var rootfsDirs = []string{"/dev", "/etc", "/proc", "/sys"}

func rootfsPersonal(cfg Config) []entry {
	return append(etcNetwork(cfg),
		entry{Path: workspaceDir, Kind: kindDir, Mode: 0o755, UID: cfg.AgentUID, GID: cfg.AgentGID})
}

// withParents adds the parent directories of each entry and sorts all.
func withParents(known map[string]entry) []entry {
	for _, p := range slices.Collect(maps.Keys(known)) {
		for up := path.Dir(p); ; up = path.Dir(up) {
			if _, ok := known[up]; !ok {
				known[up] = entry{Path: up, Kind: kindDir, Mode: 0o755}
			}
			if up == "/" {
				break
			}
		}
	}
	return slices.SortedFunc(maps.Values(known), func(a, b entry) int {
		switch {
		case a.Path < b.Path:
			return -1
		case a.Path > b.Path:
			return 1
		}
		return 0
	})
}

// write makes e below dir, which only clove can access. Ids are written as they are inside,
// because the mount of the skeleton shifts them.
func (e entry) write(dir string) error {
	at := filepath.Join(dir, e.Path)
	var err error
	switch e.Kind {
	case kindDir:
		if err = os.Mkdir(at, 0o700); os.IsExist(err) {
			err = nil
		}
	case kindFile:
		err = os.WriteFile(at, []byte(e.Data), 0o600)
	case kindLink:
		err = os.Symlink(e.Data, at)
	}
	if err != nil {
		return fmt.Errorf("cannot make %s: %w", e, err)
	}
	// chown before chmod: chown clears bits.
	if err := os.Lchown(at, int(e.UID), int(e.GID)); err != nil {
		return fmt.Errorf("cannot give away %s: %w", e, err)
	}
	if e.Kind == kindLink {
		return nil
	}
	if err := unix.Chmod(at, e.Mode); err != nil {
		return fmt.Errorf("cannot set the mode of %s: %w", e, err)
	}
	return nil
}
