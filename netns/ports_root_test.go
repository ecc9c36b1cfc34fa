//go:build root

package netns

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"clove.run/clove/internal/testhost"
)

// squat opens a socket as a program inside can: without IP_TRANSPARENT, unless the control
// asks for it.
func squat(t *testing.T, n *Namespace, kind int, at string, options ...option) (file *os.File, err error) {
	t.Helper()
	address := netip.MustParseAddrPort(at)
	err = n.do(func() (err error) {
		file, err = open(kind, address, "squatter", func(fd int) error {
			if err := set(fd, address.Addr(), append(options, optReuse)...); err != nil {
				return err
			}
			if err := unix.Bind(fd, sockaddr(address)); err != nil || kind == unix.SOCK_DGRAM {
				return err
			}
			return unix.Listen(fd, backlog)
		})
		return err
	})
	if err == nil {
		t.Cleanup(func() { file.Close() })
	}
	return file, err
}

// places are where a program could wait for what is the gate's, with a target that leads there.
var places = []struct{ at, target string }{
	{"127.0.0.11:53", "127.0.0.11:53"},
	{"0.0.0.0:53", "127.0.0.11:53"},
	{"127.0.0.11:53", "203.0.113.5:53"},
	{"203.0.113.5:53", "203.0.113.5:53"},
	{"192.0.2.1:53", "203.0.113.5:53"},
	{"0.0.0.0:53", "203.0.113.5:53"},
	{"192.0.2.1:1", "203.0.113.5:443"},
	{"0.0.0.0:1", "203.0.113.5:443"},
	{"203.0.113.5:443", "203.0.113.5:443"},
	{"0.0.0.0:443", "203.0.113.5:443"},
}

// TestTheGatesPlaceCannotBeTaken: neither while it is there nor when it has died. The control
// is the same place without rules, and a socket that only the host's root can make.
func TestTheGatesPlaceCannotBeTaken(t *testing.T) {
	prepare(t)
	w := listening(t, newPlan(Config{Everything: true}, true))
	send := func(n *Namespace, target string) (agent *os.File, err error) {
		_, err = connect(t, n, target)
		agent, failed := datagrams(t, n, "", target)
		if failed != nil {
			t.Fatal(failed)
		}
		agent.WriteString("question")
		return agent, err
	}
	try := func(n *Namespace, at, target string, options ...option) (taken int) {
		t.Helper()
		stream, err := squat(t, n, unix.SOCK_STREAM, at, options...)
		packets, err2 := squat(t, n, unix.SOCK_DGRAM, at, options...)
		if err != nil || err2 != nil {
			if !errors.Is(errors.Join(err, err2), unix.EADDRINUSE) {
				t.Errorf("%s: %v, %v", at, err, err2)
			}
			return 0
		}
		defer packets.Close()
		defer stream.Close()
		send(n, target)
		for _, file := range []*os.File{stream, packets} {
			if waiting(t, file) {
				taken++
			}
		}
		return taken
	}
	free := unruled(t)
	for _, p := range places {
		if taken := try(w.Namespace, p.at, p.target); taken != 0 {
			t.Errorf("with a gate, %s took what goes to %s", p.at, p.target)
		}
		if at, target := netip.MustParseAddrPort(p.at), netip.MustParseAddrPort(p.target); at == target || at.Addr().IsUnspecified() && at.Port() == target.Port() {
			if taken := try(free, p.at, p.target); taken != 2 {
				t.Errorf("control: without rules, %s takes %d of what goes to %s", p.at, taken, p.target)
			}
		}
	}
	w.hangUp()
	for _, p := range places {
		if taken := try(w.Namespace, p.at, p.target); taken != 0 {
			t.Errorf("without a gate, %s took what goes to %s", p.at, p.target)
		}
		agent, err := send(w.Namespace, p.target)
		_, err2 := agent.Read(make([]byte, 1))
		if !errors.Is(err, unix.ECONNREFUSED) || !errors.Is(err2, unix.ECONNREFUSED) {
			t.Errorf("without a gate, %s: %v, %v", p.target, err, err2)
		}
	}
	if taken := try(w.Namespace, "192.0.2.1:53", "127.0.0.11:53", optTransparent); taken != 2 {
		t.Errorf("control: a transparent socket takes %d", taken)
	}
}

// waiting reports whether something came to the socket.
func waiting(t *testing.T, file *os.File) (ready bool) {
	t.Helper()
	err := control(file, func(fd int) error {
		n, err := 0, error(unix.EINTR) // Go's own signals interrupt a poll, whatever SA_RESTART says (signal(7))
		for err == unix.EINTR {
			n, err = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 10)
		}
		ready = n > 0
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return ready
}

// TestLowPortsAreTheAgents: a user without privileges listens from LowestPort on, and not on
// the gate's. In a namespace as the kernel makes it this begins at 1024.
func TestLowPortsAreTheAgents(t *testing.T) {
	prepare(t)
	listens := func(n string, port string) bool {
		const script = `use Socket; socket(S, PF_INET, SOCK_STREAM, 0); bind(S, sockaddr_in($ARGV[0], INADDR_ANY)) or die $!`
		command := exec.Command("nsenter", n, testhost.Tool(t, "setpriv"), "--reuid=65534", "--regid=65534", "--clear-groups",
			testhost.Tool(t, "perl"), "-e", script, port)
		out, err := command.CombinedOutput()
		if err != nil && !strings.Contains(string(out), "Permission denied") {
			t.Fatalf("%v: %s", err, out)
		}
		return err == nil
	}
	for _, p := range []Plan{{}, newPlan(Config{Everything: true}, true)} {
		n := made(t, p)
		for port, want := range map[string]bool{"1": false, "2": true, "53": true, "80": true, "1023": true, "1024": true} {
			if got := listens("--net="+n.Path(), port); got != want {
				t.Errorf("port %s: %t", port, got)
			}
		}
	}
	bare := exec.Command(testhost.Tool(t, "sleep"), "600")
	bare.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNET}
	if err := bare.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { bare.Process.Kill(); bare.Wait() }()
	for port, want := range map[string]bool{"80": false, "1024": true} {
		if got := listens(fmt.Sprintf("--net=/proc/%d/ns/net", bare.Process.Pid), port); got != want {
			t.Errorf("control: port %s: %t", port, got)
		}
	}
}
