package observe

import (
	"slices"
	"sync"

	"golang.org/x/sys/unix"

	"clove.run/clove/seccomp"
)

// place is where a call has a path: the indexes of its directory's descriptor and of the
// string. none: it has no such argument.
type place struct{ dir, path int }

const none = -1

// change says what a call wants of a path.
type change int

const (
	toOpen   change = iota // what its flags say
	toMake                 // a new entry of a directory: it fails otherwise where one exists
	toRemove               // an entry of a directory
	toAlter                // whose it is, and what they may do with it
	toResize               // the content
	toMark                 // times and attributes
)

// fileCall is a call that writes to a file system.
type fileCall struct {
	change change
	places []place
	flags  int // index of open's flags, with toOpen; none: they are in memory, or creat's
}

// writes are the flags of open(2) without which it changes nothing. O_TMPFILE needs one of
// the first two.
const writes = unix.O_WRONLY | unix.O_RDWR | unix.O_CREAT | unix.O_TRUNC

var first = []place{{none, 0}}
var at = []place{{0, 1}}

// fileCalls are all that name a file system's entry and change it. The table is made when it
// is used: most commands of clove never ask.
var fileCalls = sync.OnceValue(func() map[string]fileCall {
	return map[string]fileCall{
		"open": {toOpen, first, 1}, "openat": {toOpen, at, 2}, "openat2": {toOpen, at, none}, "creat": {toOpen, first, none},
		"mkdir": {toMake, first, none}, "mkdirat": {toMake, at, none}, "mknod": {toMake, first, none}, "mknodat": {toMake, at, none},
		"symlink": {toMake, []place{{none, 1}}, none}, "symlinkat": {toMake, []place{{1, 2}}, none},
		"link": {toMake, []place{{none, 1}}, none}, "linkat": {toMake, []place{{2, 3}}, none},
		"rmdir": {toRemove, first, none}, "unlink": {toRemove, first, none}, "unlinkat": {toRemove, at, none},
		"rename":   {toRemove, []place{{none, 0}, {none, 1}}, none},
		"renameat": {toRemove, []place{{0, 1}, {2, 3}}, none}, "renameat2": {toRemove, []place{{0, 1}, {2, 3}}, none},
		"truncate": {toResize, first, none}, "chmod": {toAlter, first, none}, "fchmodat": {toAlter, at, none}, "fchmodat2": {toAlter, at, none},
		"fchmod": {toAlter, []place{{0, none}}, none}, "fchown": {toAlter, []place{{0, none}}, none},
		"chown": {toAlter, first, none}, "lchown": {toAlter, first, none}, "fchownat": {toAlter, at, none},
		"utime": {toMark, first, none}, "utimes": {toMark, first, none}, "futimesat": {toMark, at, none}, "utimensat": {toMark, at, none},
		"setxattr": {toMark, first, none}, "lsetxattr": {toMark, first, none}, "removexattr": {toMark, first, none}, "lremovexattr": {toMark, first, none},
	}
})

// FileCalls are to be watched where a part of the root is read-only.
func FileCalls() []seccomp.Watch {
	var list []seccomp.Watch
	for name, c := range fileCalls() {
		w := seccomp.Watch{Call: name}
		if c.flags != none {
			w.Argument, w.Bits = uint(c.flags), writes
		}
		list = append(list, w)
	}
	return list
}

var programCalls = map[string]place{"execve": {none, 0}, "execveat": {0, 1}}

// ProgramCalls are to be watched where programs may lie that must not be executed.
func ProgramCalls() []seccomp.Watch { return []seccomp.Watch{{Call: "execve"}, {Call: "execveat"}} }

// CapabilityCalls are to be watched for an agent that holds no more than these capabilities.
func CapabilityCalls(held []string) []seccomp.Watch {
	var list []seccomp.Watch
	for name, c := range capabilityCalls {
		if !slices.Contains(held, c.name) {
			list = append(list, seccomp.Watch{Call: name})
		}
	}
	return list
}

// Together are the lists as one: a call that one of them has without a condition, has none.
func Together(lists ...[]seccomp.Watch) []seccomp.Watch {
	var all []seccomp.Watch
	for _, w := range slices.Concat(lists...) {
		i := slices.IndexFunc(all, func(known seccomp.Watch) bool { return known.Call == w.Call })
		switch {
		case i < 0:
			all = append(all, w)
		case w.Bits == 0 || all[i].Bits == 0 || all[i].Argument != w.Argument:
			all[i] = seccomp.Watch{Call: w.Call}
		default:
			all[i].Bits |= w.Bits
		}
	}
	slices.SortFunc(all, func(a, b seccomp.Watch) int {
		if a.Call < b.Call {
			return -1
		}
		return 1
	})
	return all
}
