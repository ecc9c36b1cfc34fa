//go:build root

package nsthread

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"clove.run/clove/internal/testhost"
)

// A thread that is somebody else has that user's rights and no more, and no
// other thread has less than before.
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
		groups, err := os.Getgroups()
		if os.Geteuid() != 64001 || os.Getegid() != 64002 || len(groups) != 2 || !slices.Contains(groups, 64003) {
			t.Errorf("it is %d:%d, %v", os.Geteuid(), os.Getegid(), groups)
		}
		if _, _, errno := unix.RawSyscall(unix.SYS_SETUID, 0, 0, 0); errno == 0 {
			t.Error("it can be root again")
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
