package observe

import (
	"encoding/binary"
	"os"
	"path"
	"strings"

	"golang.org/x/sys/unix"

	"clove.run/clove/seccomp/notify"
)

// Finding is a refusal that a call meets if nothing changes before it.
type Finding struct {
	Target   string // a path inside, or a capability
	Errno    unix.Errno
	Unlisted bool // no list of what may be read has it
}

// maxPath is PATH_MAX.
const maxPath = 4096

// Files says which of a call's paths are on a read-only mount, and would not be refused by their
// owners and modes anyway.
func Files(from *notify.Listener, call notify.Call, name string) []Finding {
	return files(from, call, name, true)
}

// Changes says which of a call's paths are on a writable mount, and would be refused on a
// read-only one.
func Changes(from *notify.Listener, call notify.Call, name string) []Finding {
	return files(from, call, name, false)
}

func files(from *notify.Listener, call notify.Call, name string, readOnly bool) []Finding {
	c, known := fileCalls()[name]
	if !known {
		return nil
	}
	flags := openFlags(from, call, name, c)
	var found []Finding
	for i, p := range c.places {
		s, err := look(from, call, p, c.change)
		if err != nil {
			continue
		}
		// Only now: a thread that has ended meanwhile may be another one by its number.
		if s.wants(c.change, flags, i > 0) && s.onMount(c.change, readOnly) && s.permits(c.change, flags, call.Thread) && from.Valid(call) {
			found = append(found, Finding{Target: s.path(), Errno: unix.EROFS})
		}
		s.close()
	}
	return found
}

// openFlags are those of a call that opens. openat2's are behind a pointer (struct open_how).
func openFlags(from *notify.Listener, call notify.Call, name string, c fileCall) uint64 {
	switch {
	case c.flags != none:
		return call.Args[c.flags]
	case name == "creat":
		return unix.O_CREAT | unix.O_WRONLY | unix.O_TRUNC
	case name == "openat2":
		how, err := from.Bytes(call, call.Args[2], 8)
		if err != nil || len(how) < 8 {
			return 0
		}
		return binary.NativeEndian.Uint64(how)
	}
	return 0
}

// Programs says whether a call executes a file on a mount that has no programs.
func Programs(from *notify.Listener, call notify.Call, name string) []Finding {
	return programs(from, call, name, true)
}

// Executed says which file a call executes on a mount that has programs. Its path is the
// kernel's, without links.
func Executed(from *notify.Listener, call notify.Call, name string) []Finding {
	return programs(from, call, name, false)
}

func programs(from *notify.Listener, call notify.Call, name string, noexec bool) []Finding {
	p, known := programCalls[name]
	if !known {
		return nil
	}
	s, err := look(from, call, p, toOpen)
	if err != nil {
		return nil
	}
	defer s.close()
	if s.entry < 0 || mounted(s.entry, unix.ST_NOEXEC) != noexec || !s.executable(call.Thread) || !from.Valid(call) {
		return nil
	}
	return []Finding{{Target: s.path(), Errno: unix.EACCES}}
}

// executable: its owner and mode let the caller execute it.
func (s resolved) executable(thread uint32) bool {
	var stat unix.Stat_t
	who, err := callerOf(thread)
	return err == nil && unix.Fstat(s.entry, &stat) == nil && stat.Mode&unix.S_IFMT == unix.S_IFREG && who.may(stat, toSearch)
}

// resolved is the target of a call's path: the file, or, if there is none or an entry is to be
// removed, the directory as well.
type resolved struct {
	entry  int // descriptors of O_PATH, -1: there is none
	parent int
	name   string // in parent
}

// path is where it is inside.
func (s resolved) path() string {
	if s.entry >= 0 {
		return pathOf(s.entry)
	}
	return path.Join(pathOf(s.parent), s.name)
}

func (s resolved) close() {
	for _, fd := range []int{s.entry, s.parent} {
		if fd >= 0 {
			unix.Close(fd)
		}
	}
}

// look follows a path as the caller would, without leaving its root. A link at the end of it is
// not followed by calls that make or remove an entry.
func look(from *notify.Listener, call notify.Call, p place, c change) (resolved, error) {
	s := resolved{entry: -1, parent: -1}
	text := ""
	if p.path != none && call.Args[p.path] != 0 {
		var err error
		if text, err = from.Text(call, call.Args[p.path], maxPath); err != nil {
			return s, err
		}
	}
	if !strings.HasPrefix(text, "/") {
		base, err := os.Readlink(baseOf(call, p))
		if err != nil {
			return s, err
		}
		if text != "" {
			base += "/" + text
		}
		text = base
	}
	root, err := unix.Open(procPath(call.Thread, "root"), unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return s, err
	}
	defer unix.Close(root)
	entries := c == toMake || c == toRemove
	flags := uint64(0)
	if entries {
		flags = unix.O_NOFOLLOW
	}
	if s.entry, err = inRoot(root, text, flags); err == nil && !entries {
		return s, nil
	}
	dir, name := path.Split(strings.TrimRight(text, "/"))
	s.name = name
	if s.parent, err = inRoot(root, dir, 0); err != nil {
		s.close()
	}
	return s, err
}

// baseOf is the directory that a relative path begins at.
func baseOf(call notify.Call, p place) string {
	if p.dir == none || int32(call.Args[p.dir]) == unix.AT_FDCWD {
		return procPath(call.Thread, "cwd")
	}
	return procPath(call.Thread, "fd/"+number(uint64(uint32(call.Args[p.dir]))))
}

// inRoot opens a path without touching what is there: neither a device nor a FIFO notices.
func inRoot(root int, name string, flags uint64) (int, error) {
	return unix.Openat2(root, name, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC | flags, Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS})
}

// pathOf is a descriptor's path below the root of its mount namespace, which is the agent's.
func pathOf(fd int) string {
	name, _ := os.Readlink("/proc/self/fd/" + number(uint64(fd)))
	return name
}

// mounted reports whether a descriptor's mount has a flag of statfs(2).
func mounted(fd int, flag int64) bool {
	var stat unix.Statfs_t
	return unix.Fstatfs(fd, &stat) == nil && stat.Flags&flag != 0
}

// onMount reports whether the change is on a mount that is, or is not, read-only.
func (s resolved) onMount(c change, readOnly bool) bool {
	fd := s.entry
	if fd < 0 || c == toRemove {
		fd = s.parent
	}
	return mounted(fd, unix.ST_RDONLY) == readOnly
}

// wants reports whether the call changes something, and does not fail before by what exists and
// what does not. second is where a file is moved to, which need not exist.
func (s resolved) wants(c change, flags uint64, second bool) bool {
	exists := s.entry >= 0
	switch {
	case c == toMake:
		return !exists
	case c == toRemove:
		return exists || second
	case c != toOpen:
		return exists
	case flags&writes == 0, !exists && flags&unix.O_CREAT == 0:
		return false
	case exists && flags&(unix.O_CREAT|unix.O_EXCL) == unix.O_CREAT|unix.O_EXCL:
		return false
	}
	return !exists || flags&(writes&^unix.O_CREAT) != 0
}
