package observe

import (
	"golang.org/x/sys/unix"

	"clove.run/clove/seccomp"
	"clove.run/clove/seccomp/notify"
)

// ReadCalls are to be watched where only a part of what is there may be read: every open, as the
// flags of one that reads have no bit of their own.
func ReadCalls() []seccomp.Watch {
	return []seccomp.Watch{{Call: "open"}, {Call: "openat"}, {Call: "openat2"}, {Call: "execve"}, {Call: "execveat"}}
}

// Executes reports whether a call executes a file.
func Executes(name string) bool { _, is := programCalls[name]; return is }

// Reads says whether a call opens for reading, or executes, what no list has. listed answers for a
// path inside, without links. A call that the mode would refuse anyway is not found.
func Reads(from *notify.Listener, call notify.Call, name string, listed func(string) bool) []Finding {
	p, reads := readPlace(from, call, name)
	if !reads {
		return nil
	}
	s, err := look(from, call, p, toOpen)
	if err != nil {
		return nil
	}
	defer s.close()
	if s.entry < 0 || listed(s.path()) || !s.readable(name, call.Thread) || !from.Valid(call) {
		return nil
	}
	return []Finding{{Target: s.path(), Errno: unix.EACCES, Unlisted: true}}
}

// readPlace is where a call that reads has its path. To open a path alone (O_PATH) reads nothing.
func readPlace(from *notify.Listener, call notify.Call, name string) (p place, reads bool) {
	if p, reads = programCalls[name]; reads {
		return p, true
	}
	c, known := fileCalls()[name]
	if !known || c.change != toOpen {
		return p, false
	}
	flags := openFlags(from, call, name, c)
	return c.places[0], flags&unix.O_ACCMODE != unix.O_WRONLY && flags&unix.O_PATH == 0
}

// readable: its owner and mode let the caller read it, or execute it where that is what the call
// does.
func (s resolved) readable(name string, thread uint32) bool {
	if Executes(name) {
		return s.executable(thread)
	}
	var stat unix.Stat_t
	who, err := callerOf(thread)
	return err == nil && unix.Fstat(s.entry, &stat) == nil && who.may(stat, toRead)
}
