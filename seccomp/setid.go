package seccomp

import (
	"fmt"
	"slices"

	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// setID are the bits of a mode that lend a file's owner or group to whoever
// executes it.
const setID = unix.S_ISUID | unix.S_ISGID

// makesFile are the flags with which open reads its mode at all: __O_TMPFILE
// is O_TMPFILE without O_DIRECTORY.
const makesFile = unix.O_CREAT | (unix.O_TMPFILE &^ unix.O_DIRECTORY)

// ProfileWithoutSetID is Profile for an agent that writes into a directory of
// the host's (-v): what it makes there belongs to the directory's owner, so a
// file with a set-user-ID bit would lend that owner to every user of the host.
// Inside such a file has no power anyway. The unconfined profile stays nil.
func ProfileWithoutSetID(name string) (*specs.LinuxSeccomp, error) {
	if name == Unconfined {
		return nil, nil
	}
	for _, b := range builtins() {
		if b.name == name {
			b.refusals = slices.Concat(b.refusals, setIDRefusals)
			b.conditions = slices.Concat(b.conditions, setIDConditions())
			return b.build()
		}
	}
	return nil, fmt.Errorf("cannot find seccomp profile %q", name)
}

var setIDRefusals = []refusal{
	{reason: "the mode of a new file is behind a pointer, where a filter cannot look for set-user-ID; programs fall back to openat",
		errno: uint(unix.ENOSYS), names: []string{"openat2"}},
}

// setIDConditions refuse a mode with one of the bits wherever a file gets one.
func setIDConditions() []condition {
	var rows []condition
	for _, call := range []struct {
		name string
		mode uint // index of the argument
	}{{"chmod", 1}, {"fchmod", 1}, {"fchmodat", 2}, {"fchmodat2", 2}, {"creat", 1}} {
		rows = append(rows, noSetID(call.name, all(masked(call.mode, setID, 0))))
	}
	// open reads its mode only where it may make a file; else it is any number.
	return append(rows,
		noSetID("open", all(masked(1, makesFile, 0)), all(masked(2, setID, 0))),
		noSetID("openat", all(masked(2, makesFile, 0)), all(masked(3, setID, 0))))
}

func noSetID(name string, accept ...[]specs.LinuxSeccompArg) condition {
	return condition{
		name:    name,
		allowed: "modes without set-user-ID and set-group-ID",
		reason:  "the file would lend the owner of a directory of the host's to everybody",
		accept:  accept,
	}
}
