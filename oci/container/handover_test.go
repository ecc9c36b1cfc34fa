package container

import (
	"os"
	"strings"
	"testing"

	"github.com/opencontainers/runc/libcontainer"
	"golang.org/x/sys/unix"
)

// TestSocketsOfAnotherNetworkAreNotHandedOn: a container with rules does not get them. Sockets
// with a path in the file system, or without a network, are.
func TestSocketsOfAnotherNetworkAreNotHandedOn(t *testing.T) {
	for name, row := range map[string]struct {
		domain, kind int
		refused      bool
	}{
		"a connection":           {unix.AF_INET, unix.SOCK_STREAM, true},
		"one for datagrams":      {unix.AF_INET6, unix.SOCK_DGRAM, true},
		"one of the kernel's":    {unix.AF_NETLINK, unix.SOCK_RAW, true},
		"one of the file system": {unix.AF_UNIX, unix.SOCK_STREAM, false},
	} {
		fd, err := unix.Socket(row.domain, row.kind|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		file := os.NewFile(uintptr(fd), "PreserveFD:3")
		defer file.Close()
		err = checkSockets(&libcontainer.Process{ExtraFiles: []*os.File{os.Stdin, file}}, false)
		if (err != nil) != row.refused || err != nil && !strings.Contains(err.Error(), "PreserveFD:3") {
			t.Errorf("%s: %v", name, err)
		}
		kept := os.Stderr
		os.Stderr = file
		stream, terminal := checkSockets(&libcontainer.Process{}, true), checkSockets(&libcontainer.Process{}, false)
		os.Stderr = kept
		if (stream != nil) != row.refused || terminal != nil {
			t.Errorf("%s for a stream: %v, with a terminal: %v", name, stream, terminal)
		}
	}
}
