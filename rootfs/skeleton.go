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

// entryKind is what an entry makes.
type entryKind string

const (
	kindDir  entryKind = "dir"
	kindFile entryKind = "file"
	kindLink entryKind = "link"
)

// entry is one name of the skeleton: the lowest layer of the root, made anew
// for each run.
type entry struct {
	Path     string
	Kind     entryKind
	Mode     uint32 // permissions with the sticky bit; unused for a link
	UID, GID uint32 // inside
	Data     string // a file's bytes, a link's text
}

func (e entry) String() string {
	switch e.Kind {
	case kindLink:
		return fmt.Sprintf("link %s -> %s", e.Path, e.Data)
	case kindFile:
		return fmt.Sprintf("file %s %04o %d:%d %d bytes", e.Path, e.Mode, e.UID, e.GID, len(e.Data))
	default:
		return fmt.Sprintf("dir %s %04o %d:%d", e.Path, e.Mode, e.UID, e.GID)
	}
}

// skeleton returns the positive list of names of a root over the host's base,
// parents before children. What is not on it, and in no overlay, is not there.
func skeleton(cfg Config, f facts) []entry {
	homeUID, homeGID := agentIDs(cfg.AgentUID, cfg.AgentGID)
	known := map[string]entry{}
	add := func(e entry) { known[e.Path] = e }
	dir := func(path string, mode uint32) { add(entry{Path: path, Kind: kindDir, Mode: mode}) }
	for _, e := range f.Etc {
		add(e)
	}
	for _, e := range etcGenerated(cfg, f) {
		add(e)
	}
	for _, path := range f.Base {
		dir(path, 0o755)
	}
	for path, link := range f.Links {
		add(entry{Path: path, Kind: kindLink, Data: link})
	}
	for _, path := range []string{"/dev", "/proc", "/run", "/sys", "/var/cache/apt/archives/partial", "/var/cache/debconf",
		"/var/lib/apt/lists/partial", "/var/lib/misc", "/var/log/apt", "/var/spool"} {
		dir(path, 0o755)
	}
	for _, path := range []string{"/run/lock", "/tmp", "/var/tmp"} {
		dir(path, 0o1777)
	}
	add(entry{Path: "/var/run", Kind: kindLink, Data: "/run"})
	add(entry{Path: "/var/lock", Kind: kindLink, Data: "/run/lock"})
	add(entry{Path: "/root", Kind: kindDir, Mode: rootHomeMode(f)})
	add(entry{Path: agentHome, Kind: kindDir, Mode: 0o755, UID: homeUID, GID: homeGID})
	add(entry{Path: workspaceDir, Kind: kindDir, Mode: 0o755, UID: cfg.AgentUID, GID: cfg.AgentGID})
	return withParents(known)
}

// rootHomeMode opens /root to the agent only where an interpreter lies below it.
func rootHomeMode(f facts) uint32 {
	if slices.ContainsFunc(f.Prefixes, func(p source) bool { return within(p.Path, "/root") }) {
		return 0o755
	}
	return 0o700
}

// withParents adds the directories that lead to each entry and sorts them all.
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

// write makes e below dir, which nobody but clove can reach.
func (e entry) write(dir string, hostID uint32) error {
	at := filepath.Join(dir, e.Path)
	var err error
	switch e.Kind {
	case kindDir:
		if err = os.Mkdir(at, 0o700); os.IsExist(err) && e.Path == "/" {
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
	if err := os.Lchown(at, int(hostID+e.UID), int(hostID+e.GID)); err != nil {
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
