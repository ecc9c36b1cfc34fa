package nsthread

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Identity is a user with the ids that the kernel checks.
type Identity struct {
	UID, GID uint32
	Groups   []uint32 // the supplementary ones
}

// StartAs makes a thread with another user's ids for files and sockets. It can open what
// that user can open, wherever a path leads, and its sockets belong to the user (iptables
// -m owner, ss -e). It has no capability. For root it is an ordinary thread.
//
// Its real, effective and saved ids stay root's. With the user's ids, the user could kill
// this whole process by a signal to the thread (kill(2) accepts a thread's id), and change
// its limits and scheduling (prlimit(2), sched_setscheduler(2)). So a program that the
// thread executed would be root, and a peer on a Unix socket sees root.
func StartAs(who Identity) (*Thread, error) {
	t, err := Start(0)
	if err != nil {
		return nil, err
	}
	return t.become(who)
}

// StartBesideAs makes such a thread in the mount namespace of the calling one.
func StartBesideAs(who Identity) (*Thread, error) {
	// thread-self and not self, which is the first thread's namespace.
	namespace, err := unix.Open("/proc/thread-self/ns/mnt", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("cannot open a mount namespace: %w", err)
	}
	defer unix.Close(namespace)
	beside, err := Start(0)
	if err != nil {
		return nil, err
	}
	if err := beside.Do(func() error { return unix.Setns(namespace, unix.CLONE_NEWNS) }); err != nil {
		beside.Close()
		return nil, fmt.Errorf("cannot enter a mount namespace: %w", err)
	}
	return beside.become(who)
}

// become ends the thread where it cannot become the user: a half of it must not be used.
func (t *Thread) become(who Identity) (*Thread, error) {
	if who.UID == 0 {
		return t, nil
	}
	if err := t.Do(func() error { return become(who) }); err != nil {
		t.Close()
		return nil, fmt.Errorf("cannot take the ids of user %d: %w", who.UID, err)
	}
	return t, nil
}

// become changes the ids of this thread only, with raw system calls, because the library's
// change all threads. The user id comes after the groups, and the capabilities, which allow
// all these changes, are dropped last.
func become(who Identity) error {
	groups := append(append([]uint32{}, who.Groups...), who.GID) // never empty, so that it has an address
	// The conversion to uintptr must be in the call itself (package unsafe, rule 4).
	_, _, errno := unix.RawSyscall(unix.SYS_SETGROUPS, uintptr(len(groups)), uintptr(unsafe.Pointer(&groups[0])), 0)
	if errno != 0 {
		return errno
	}
	if !setID(unix.SYS_SETFSGID, who.GID) || !setID(unix.SYS_SETFSUID, who.UID) {
		return unix.EPERM
	}
	none := [2]unix.CapUserData{}
	return unix.Capset(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, &none[0])
}

// setID calls setfsuid(2) or setfsgid(2). They report no error, so the id is read back.
func setID(call uintptr, id uint32) bool {
	_, _, _ = unix.RawSyscall(call, uintptr(id), 0, 0)
	return fileID(call) == id
}

// fileID reads an id by setting an invalid one, which changes nothing.
func fileID(call uintptr) uint32 {
	const nobodys = 1<<32 - 1
	now, _, _ := unix.RawSyscall(call, nobodys, 0, 0)
	return uint32(now)
}

// FileUID is the user to whom files of the calling thread belong. Inside Do, os.Geteuid
// does not return it.
func FileUID() uint32 { return fileID(unix.SYS_SETFSUID) }
