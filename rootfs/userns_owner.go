package rootfs

import (
	"fmt"
	"os"
	"runtime"
	"sync"

	"golang.org/x/sys/unix"
)

// ownerID is the owner of the user namespaces, as an id inside: clove-init's.
//
// The kernel limits inotify instances and watches, pending signals and message queues per
// user. It counts them for the user within each namespace, and also for the namespace's
// owner outside (ucounts). If the host's root were the owner, one agent could use up the
// limits of root and of all other agents.
const ownerID = 65533

// holderMu protects the holder, of which there is one at a time, and the process's
// "dumpable" attribute, which the kernel clears when a thread changes its user.
var holderMu sync.Mutex

// ownedNamespace is userNamespace on a thread that temporarily has the user owner.
func ownedNamespace(m idMap, owner uint32) (*os.File, error) {
	holderMu.Lock()
	defer holderMu.Unlock()
	runtime.LockOSThread() // the user and the holder's parent-death signal belong to the thread
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
		err = setDumpable(before) // the holder shares the attribute; if it is off, /proc/PID/ns needs CAP_SYS_PTRACE
	}
	if err == nil {
		namespace, err = userNamespace(m)
	}
	if become(0) == nil {
		runtime.UnlockOSThread() // otherwise the thread ends with its goroutine
	}
	// If it stayed off, processes that clove starts could not open /proc/PID/fd.
	if restoreErr := setDumpable(before); restoreErr != nil && err == nil {
		namespace.Close()
		return nil, restoreErr
	}
	return namespace, err
}

// setDumpable sets the attribute of the whole process; the kernel has one for each address
// space.
func setDumpable(value int) error {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, uintptr(value), 0, 0, 0); err != nil {
		return fmt.Errorf("cannot make clove dumpable again: %w", err)
	}
	return nil
}

// become changes the effective user of this thread only, and keeps every capability
// effective. It is a raw system call, because the library's function changes all threads.
// The kernel clears the effective capabilities of a thread whose effective user is no
// longer 0 (capabilities(7)), so they are set again.
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
