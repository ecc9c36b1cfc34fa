package seccomp

import (
	"slices"

	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// setID are the mode bits that give the file's owner or group to the process that executes it.
const setID = unix.S_ISUID | unix.S_ISGID

// makesFile are the flags with which open(2) uses its mode argument. O_TMPFILE includes
// O_DIRECTORY, which is masked out: it alone creates no file.
const makesFile = unix.O_CREAT | (unix.O_TMPFILE &^ unix.O_DIRECTORY)

// withoutSetID adds the rows below. A condition of a call that the profile refuses would
// allow it.
func (b builtin) withoutSetID() builtin {
	b.conditions = narrow(b.conditions, setIDConditions(), b.refusals)
	b.refusals = slices.Concat(b.refusals, setIDRefusals)
	return b
}

var setIDRefusals = []refusal{
	{group: "set-id", reason: "the mode of a new file is behind a pointer, where a filter cannot look for set-user-ID; programs fall back to openat",
		errno: uint(unix.ENOSYS), names: []string{"openat2"}},
}

// setIDConditions refuse the bits in every call that sets a mode. mkdir is not among them,
// because the kernel ignores these bits of its mode (mkdir(2)); mknod refuses them in every
// profile (fileTypes).
func setIDConditions() []condition {
	var rows []condition
	for _, call := range []struct {
		name string
		mode uint // index of the argument
	}{{"chmod", 1}, {"fchmod", 1}, {"fchmodat", 2}, {"fchmodat2", 2}, {"creat", 1}} {
		rows = append(rows, noSetID(call.name, all(masked(call.mode, setID, 0))))
	}
	// open uses its mode only where it may create a file. Otherwise the argument is undefined and must not be checked.
	return append(rows,
		noSetID("open", all(masked(1, makesFile, 0)), all(masked(2, setID, 0))),
		noSetID("openat", all(masked(2, makesFile, 0)), all(masked(3, setID, 0))))
}

func noSetID(name string, accept ...[]specs.LinuxSeccompArg) condition {
	return condition{
		name:    name,
		group:   "set-id",
		allowed: "modes without set-user-ID and set-group-ID",
		reason:  "in a directory of the host, such a file would give its owner's rights to everybody",
		accept:  accept,
	}
}
