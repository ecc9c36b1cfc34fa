package nsthread

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Identity is a user as the kernel knows one.
type Identity struct {
	UID, GID uint32
	Groups   []uint32 // the supplementary ones
}

// StartAs makes a thread that is somebody else for good: what it may do is
// what the kernel lets that user do, whoever planted the paths that it meets.
// For root it is a thread like any other.
func StartAs(who Identity) (*Thread, error) {
	t, err := Start(0)
	if err != nil {
		return nil, err
	}
	return t.become(who)
}

// StartBesideAs makes a thread that is somebody else, in the mount namespace
// of the calling one.
func StartBesideAs(who Identity) (*Thread, error) {
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

// become changes the ids of this thread alone: the raw calls, because those of
// the library change all threads. The user's id comes last, for it takes the
// right to change the others, and every capability.
func become(who Identity) error {
	groups := append(append([]uint32{}, who.Groups...), who.GID) // never empty, so that it has an address
	gid, uid := uintptr(who.GID), uintptr(who.UID)
	// The conversion of a pointer has to stand in the call itself (package unsafe).
	_, _, errno := unix.RawSyscall(unix.SYS_SETGROUPS, uintptr(len(groups)), uintptr(unsafe.Pointer(&groups[0])), 0)
	if errno == 0 {
		_, _, errno = unix.RawSyscall(unix.SYS_SETRESGID, gid, gid, gid)
	}
	if errno == 0 {
		_, _, errno = unix.RawSyscall(unix.SYS_SETRESUID, uid, uid, uid)
	}
	if errno != 0 {
		return errno
	}
	return nil
}
