package container

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"clove.run/clove/internal/passfd"
)

func TestADescriptorIsReceivedOrMissed(t *testing.T) {
	for name, row := range map[string]struct {
		fds  int
		good bool
	}{"one": {1, true}, "none": {0, false}, "two": {2, false}} {
		pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		theirs := os.NewFile(uintptr(pair[1]), "theirs")
		ours, err := passfd.New(pair[0])
		if err != nil {
			t.Fatal(err)
		}
		var rights []byte
		if row.fds > 0 {
			rights = unix.UnixRights(make([]int, row.fds)...) // standard input, so many times
		}
		if err := unix.Sendmsg(pair[1], []byte("/dev/ptmx"), rights, nil, 0); err != nil {
			t.Fatal(err)
		}
		theirs.Close()
		fd, err := receive(ours)
		if (err == nil) != row.good {
			t.Errorf("%s: %d, %v", name, fd, err)
		}
		if err == nil {
			unix.Close(fd)
		}
		if _, err := receive(ours); err == nil {
			t.Errorf("%s: something came from a closed socket", name)
		}
		ours.Close()
	}
}
