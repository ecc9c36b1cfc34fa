package rootfs

import (
	"fmt"
	"os"
	"runtime"
	"sync"

	"golang.org/x/sys/unix"
)

// ownerID is whose the user namespaces are, inside: clove-init's id.
//
// What a user may have of inotify instances and watches, pending signals and
// message queues is counted for the user within each namespace and, once more,
// for the namespace's owner outside (ucounts). Were the host's root the owner,
// then one agent could use up what root and all other agents have together.
const ownerID = 65533

// births guards the holder, of which there is one at a time, and the attribute
// "dumpable", which is the process's and which changing the user of one thread
// takes away.
var births sync.Mutex

// ownedNamespace is userNamespace on a thread that is, for that time, owner.
func ownedNamespace(m idMap, owner uint32) (*os.File, error) {
	births.Lock()
	defer births.Unlock()
	runtime.LockOSThread() // the user is the thread's, and so is the holder's parent-death signal
	before, err := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0)
	if err != nil {
		runtime.UnlockOSThread()
		return nil, fmt.Errorf("cannot tell whether clove is dumpable: %w", err)
	}
	if err = become(uintptr(owner)); err != nil {
		err = fmt.Errorf("cannot become the owner of a user namespace: %w", err)
	}
	var namespace *os.File
	if err == nil {
		err = setDumpable(before) // the holder shares it; not dumpable, its /proc/PID/ns would need CAP_SYS_PTRACE
	}
	if err == nil {
		namespace, err = userNamespace(m)
	}
	if become(0) == nil {
		runtime.UnlockOSThread() // else the thread ends with its goroutine
	}
	// Not dumpable, /proc/PID/fd would be closed to the processes that clove starts.
	if restoreErr := setDumpable(before); restoreErr != nil && err == nil {
		namespace.Close()
		return nil, restoreErr
	}
	return namespace, err
}

func setDumpable(value int) error {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, uintptr(value), 0, 0, 0); err != nil {
		return fmt.Errorf("cannot make clove dumpable again: %w", err)
	}
	return nil
}

// become changes the effective user of this thread only, and keeps every
// capability in effect: the raw call, since the library's changes all threads.
func become(uid uintptr) error {
	const unchanged = ^uintptr(0)
	if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, unchanged, uid, unchanged); errno != 0 {
		return errno
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	data := [2]unix.CapUserData{}
	if err := unix.Capget(&header, &data[0]); err != nil {
		return err
	}
	for i := range data {
		data[i].Effective = data[i].Permitted
	}
	return unix.Capset(&header, &data[0])
}
