package pidfd

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"clove.run/clove/internal/testhost"
)

func TestWhoHasNoProcessIsGone(t *testing.T) {
	for name, pid := range map[string]int{"nobody's": 1<<22 + 1, "a thread's": testhost.Thread(t)} {
		if fd, err := unix.PidfdOpen(pid, 0); !Gone(err) {
			t.Errorf("%s: %d, %v", name, fd, err)
		}
	}
	fd, err := unix.PidfdOpen(os.Getpid(), 0)
	if err != nil || Gone(err) {
		t.Fatalf("this process: %v", err)
	}
	unix.Close(fd)
	for _, err := range []error{unix.EPERM, unix.EMFILE, unix.ENOSYS} {
		if Gone(err) {
			t.Errorf("%v tells nothing of the process", err)
		}
	}
}
