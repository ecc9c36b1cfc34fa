package monitor

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
)

// CheckReach refuses a container whose processes could signal its monitor; pid is its
// first process. A process can signal only what its pid namespace shows. If that shows
// the monitor, the container must not have the monitor's user. The error is of
// KindUnenforceable. The answer cannot change before the container executes.
func CheckReach(pid int) error {
	hidden, err := hiddenFrom(pid)
	if err != nil || hidden {
		return err
	}
	mapped, err := mapsRoot(fmt.Sprintf("/proc/%d/uid_map", pid))
	if err != nil || !mapped {
		return err
	}
	return &agent.Error{Kind: agent.KindUnenforceable, Message: "the container shares the host's pid namespace as the host's root, and could kill the process that enforces its rules",
		Hint: "give it a pid namespace of its own, or a user namespace without the host's root"}
}

// hiddenFrom reports whether pid's pid namespace is below this process's: then it
// shows nothing of this one.
func hiddenFrom(pid int) (bool, error) {
	own, err := identity("/proc/self/ns/pid")
	if err != nil {
		return false, err
	}
	file, err := os.Open(fmt.Sprintf("/proc/%d/ns/pid", pid))
	if err != nil {
		return false, err
	}
	defer func() { file.Close() }()
	for depth := 0; ; depth++ {
		id, err := identityOf(file)
		if err != nil {
			return false, err
		}
		if id == own {
			return depth > 0, nil
		}
		above, err := unix.IoctlRetInt(int(file.Fd()), unix.NS_GET_PARENT)
		if errors.Is(err, unix.EPERM) {
			return false, nil // it is not below this one: ioctl_ns(2) shows no other
		}
		if err != nil {
			return false, os.NewSyscallError("NS_GET_PARENT", err)
		}
		file.Close()
		file = os.NewFile(uintptr(above), "pid namespace")
	}
}

// nsIdentity is what two descriptors of one namespace share, namespaces(7).
type nsIdentity struct{ device, inode uint64 }

// identity is that of the namespace that a path of /proc/PID/ns names.
func identity(path string) (nsIdentity, error) {
	var about unix.Stat_t
	if err := unix.Stat(path, &about); err != nil {
		return nsIdentity{}, &os.PathError{Op: "stat", Path: path, Err: err}
	}
	return nsIdentity{about.Dev, about.Ino}, nil
}

func identityOf(file *os.File) (nsIdentity, error) {
	var about unix.Stat_t
	if err := unix.Fstat(int(file.Fd()), &about); err != nil {
		return nsIdentity{}, os.NewSyscallError("fstat", err)
	}
	return nsIdentity{about.Dev, about.Ino}, nil
}

// mapsRoot reports whether a map of user ids, as this namespace reads it, contains
// the root of this namespace; user_namespaces(7).
func mapsRoot(path string) (bool, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return false, err
	}
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) != 3 {
			return false, fmt.Errorf("cannot parse %s: %q", path, line)
		}
		// The second field is the first id of the range outside. 0 is the smallest id, so
		// a range can contain it only there.
		outside, err := strconv.ParseUint(fields[1], 10, 32)
		if err != nil {
			return false, fmt.Errorf("cannot parse %s: %w", path, err)
		}
		if outside == 0 {
			return true, nil
		}
	}
	return false, nil
}
