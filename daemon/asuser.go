package daemon

import (
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"

	"clove.run/clove/internal/nsthread"
)

// asUser runs look with the ids of the caller, so that the kernel itself says
// what the caller may do. The thread ends with it: its ids cannot be taken back.
func asUser(c caller, look func() error) error {
	thread, err := nsthread.Start(0)
	if err != nil {
		return err
	}
	defer thread.Close()
	return thread.Do(func() error {
		if err := become(c); err != nil {
			return fmt.Errorf("cannot take the caller's ids: %w", err)
		}
		return look()
	})
}

// become changes the ids of this thread alone: the raw calls, because those of
// the library change all threads. The user's id comes last, for it takes the
// right to change the others.
func become(c caller) error {
	groups := append(append([]uint32{}, c.groups...), c.owner.GID) // never empty, so that it has an address
	gid, uid := uintptr(c.owner.GID), uintptr(c.owner.UID)
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

// readable tells whether a directory can be listed and passed through. Empty
// is no directory at all.
func readable(dir string) error {
	if dir == "" {
		return nil
	}
	file, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err == nil && !info.IsDir() {
		err = errNotDirectory
	}
	if err == nil {
		_, err = os.Lstat(dir + "/.")
	}
	return err
}
