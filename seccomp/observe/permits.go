package observe

import (
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Permission bits of a mode, for others.
const (
	toRead   = 0o4
	toWrite  = 0o2
	toSearch = 0o1 // a directory; a file is executed with the same bit
)

// permits reports whether owners and modes let a caller make the change. A change that they
// refuse fails on a writable mount as well, so that refusal is not the sandbox's. Access lists
// are not read, and of the directories that lead to the place the last one alone is.
func (s resolved) permits(c change, flags uint64, thread uint32) bool {
	who, err := callerOf(thread)
	if err != nil {
		return false
	}
	var stat unix.Stat_t
	if s.entry >= 0 && unix.Fstat(s.entry, &stat) != nil {
		return false
	}
	switch {
	case c == toMake, c == toOpen && s.entry < 0:
		return who.mayIn(s.parent)
	case c == toRemove:
		return who.mayIn(s.parent) && (s.entry < 0 || !who.stuck(s.parent, stat))
	case c == toOpen:
		return opensAs(who, flags, stat)
	case c == toResize:
		return who.may(stat, toWrite)
	case c == toMark:
		return who.owns(stat) || who.may(stat, toWrite)
	}
	return who.owns(stat) || who.overrides(unix.CAP_CHOWN, stat)
}

// opensAs says it of an open of what exists. On a read-only mount devices, FIFOs and sockets
// are written as on any.
func opensAs(who caller, flags uint64, stat unix.Stat_t) bool {
	bits := uint32(toWrite)
	switch {
	case stat.Mode&unix.S_IFMT == unix.S_IFDIR:
		return flags&unix.O_TMPFILE == unix.O_TMPFILE && who.may(stat, toWrite|toSearch)
	case stat.Mode&unix.S_IFMT != unix.S_IFREG:
		return false
	case flags&unix.O_ACCMODE == unix.O_RDWR:
		bits |= toRead
	}
	return who.may(stat, bits)
}

// may is the kernel's check of owner and mode (inode_permission). Executing takes a bit of the
// mode for every caller.
func (c caller) may(stat unix.Stat_t, bits uint32) bool {
	mode := stat.Mode
	switch {
	case stat.Uid == c.uids[3]:
		mode >>= 6
	case c.inGroup(stat.Gid):
		mode >>= 3
	}
	if mode&bits == bits {
		return true
	}
	plain := stat.Mode&unix.S_IFMT != unix.S_IFDIR
	return c.overrides(unix.CAP_DAC_OVERRIDE, stat) && !(plain && bits&toSearch != 0 && stat.Mode&0o111 == 0)
}

// mayIn: entries of the directory can be made and removed.
func (c caller) mayIn(dir int) bool {
	var stat unix.Stat_t
	return dir >= 0 && unix.Fstat(dir, &stat) == nil && c.may(stat, toWrite|toSearch)
}

// stuck: in a directory such as /tmp an entry is its owner's.
func (c caller) stuck(dir int, entry unix.Stat_t) bool {
	var stat unix.Stat_t
	if unix.Fstat(dir, &stat) != nil {
		return true
	}
	return stat.Mode&unix.S_ISVTX != 0 && stat.Uid != c.uids[3] && !c.owns(entry)
}

func (c caller) owns(stat unix.Stat_t) bool {
	return stat.Uid == c.uids[3] || c.overrides(unix.CAP_FOWNER, stat)
}

// overrides: a capability counts for files whose owner and group the user namespace has
// (capable_wrt_inode_uidgid).
func (c caller) overrides(capability int, stat unix.Stat_t) bool {
	return c.has(capability) && mapped(c.thread, "uid_map", stat.Uid) && mapped(c.thread, "gid_map", stat.Gid)
}

// mapped looks for a host's id in a map (user_namespaces(7)).
func mapped(thread uint32, name string, id uint32) bool {
	text, err := os.ReadFile(procPath(thread, name))
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) != 3 {
			continue
		}
		first, err1 := strconv.ParseUint(fields[1], 10, 32)
		count, err2 := strconv.ParseUint(fields[2], 10, 32)
		if err1 == nil && err2 == nil && uint64(id) >= first && uint64(id) < first+count {
			return true
		}
	}
	return false
}
