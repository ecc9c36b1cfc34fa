//go:build root

package nsthread

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"clove.run/clove/internal/testhost"
)

// A thread with another user's ids has that user's rights and no more, and all other threads
// keep theirs.
func TestStartAs(t *testing.T) {
	testhost.Root(t)
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	read := func() error { _, err := os.ReadFile(secret); return err }
	thread, err := StartAs(Identity{UID: 64001, GID: 64002, Groups: []uint32{64003}})
	if err != nil {
		t.Fatal(err)
	}
	defer thread.Close()
	if err := thread.Do(read); !errors.Is(err, os.ErrPermission) {
		t.Errorf("a user reads root's file: %v", err)
	}
	err = thread.Do(func() error {
		status, err := os.ReadFile("/proc/thread-self/status")
		for _, want := range []string{"Uid:\t0\t0\t0\t64001\n", "Gid:\t0\t0\t0\t64002\n", "Groups:\t64002 64003 \n",
			"CapPrm:\t0000000000000000\n", "CapEff:\t0000000000000000\n"} {
			if !strings.Contains(string(status), want) {
				t.Errorf("no %q in its status:\n%s", want, status)
			}
		}
		if FileUID() != 64001 {
			t.Errorf("its files are user %d's", FileUID())
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	if err := read(); err != nil {
		t.Errorf("the control, every other thread: %v", err)
	}
}

// TestTheUserCannotSignalItsThread: kill(2) with a thread's id ends the whole process, and is
// allowed if the real or saved id of that thread is the caller's. The control is a thread that
// took all of the user's ids.
func TestTheUserCannotSignalItsThread(t *testing.T) {
	testhost.Root(t)
	user := Identity{UID: 64001, GID: 64001}
	thread, err := StartAs(user)
	if err != nil {
		t.Fatal(err)
	}
	defer thread.Close()
	control, err := Start(0)
	if err != nil {
		t.Fatal(err)
	}
	defer control.Close()
	err = control.Do(func() error {
		if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, 64001, 64001, 64001); errno != 0 {
			return errno
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := signalAs(t, user, control); err != nil {
		t.Fatalf("control: the user cannot signal a thread that has all of their ids: %v", err)
	}
	if err := signalAs(t, user, thread); err == nil {
		t.Error("the user can signal the thread, and so end this process")
	}
}

// signalAs sends the thread signal 0, which only checks the permission.
func signalAs(t *testing.T, user Identity, thread *Thread) error {
	t.Helper()
	var id int
	if err := thread.Do(func() error { id = unix.Gettid(); return nil }); err != nil {
		t.Fatal(err)
	}
	kill := exec.Command(testhost.Tool(t, "kill"), "-0", strconv.Itoa(id))
	kill.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: user.UID, Gid: user.GID}}
	return kill.Run()
}

// TestSocketsAreTheUsers: the kernel sets a socket's owner when it is made.
func TestSocketsAreTheUsers(t *testing.T) {
	testhost.Root(t)
	owner := func(thread *Thread) (uid uint32) {
		t.Helper()
		err := thread.Do(func() error {
			fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
			if err != nil {
				return err
			}
			defer unix.Close(fd)
			var stat unix.Stat_t
			err = unix.Fstat(fd, &stat)
			uid = stat.Uid
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return uid
	}
	for _, uid := range []uint32{0, 64001} {
		thread, err := StartAs(Identity{UID: uid, GID: uid})
		if err != nil {
			t.Fatal(err)
		}
		defer thread.Close()
		if got := owner(thread); got != uid {
			t.Errorf("a socket of user %d is user %d's", uid, got)
		}
	}
}
