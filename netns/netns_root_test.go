//go:build root

package netns

import (
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestOnlyLoopbackIsThereAndItIsUp(t *testing.T) {
	prepare(t)
	n, err := New()
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	err = n.do(func() error {
		links, err := net.Interfaces()
		if err != nil {
			return err
		}
		if len(links) != 1 || links[0].Name != "lo" || links[0].Flags&net.FlagUp == 0 {
			t.Errorf("interfaces: %+v", links)
		}
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		return listener.Close()
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestThereIsNoWayOut(t *testing.T) {
	prepare(t)
	outside, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer outside.Close()
	// Control: the host itself reaches the service on its loopback.
	c, err := net.Dial("tcp", outside.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
	n, err := New()
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	err = n.do(func() error {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		port := outside.Addr().(*net.TCPAddr).Port
		err = unix.Connect(fd, &unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}})
		if err != unix.ECONNREFUSED {
			t.Errorf("connect to the host's loopback: %v, want ECONNREFUSED", err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestPathServesOtherProcesses(t *testing.T) {
	prepare(t)
	n, err := New()
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	out, err := exec.Command("nsenter", "--net="+n.Path(), "cat", "/proc/net/dev").CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if got := strings.Count(string(out), ":"); got != 1 {
		t.Errorf("want one interface:\n%s", out)
	}
	if _, err := os.Stat(n.Path()); err != nil {
		t.Error(err)
	}
}
