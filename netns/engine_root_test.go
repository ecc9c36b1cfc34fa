//go:build root

package netns

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/internal/ocitest"
	"clove.run/clove/internal/pidfd"
	"clove.run/clove/internal/testhost"
)

const testOwner, testPolicy = "7-42", "c10e"

// engineWorld is an engine's namespace with a plan and the gate's sockets.
func engineWorld(t *testing.T, everything bool) (*world, *ocitest.Network) {
	t.Helper()
	network := ocitest.NewNetwork(t)
	n, err := OpenEngine(network.Path())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { n.Close() })
	plan, err := EnginePlan(n, everything, testOwner, testPolicy)
	if err != nil {
		t.Fatal(err)
	}
	if err := plan.Apply(n); err != nil {
		t.Fatal(err)
	}
	w := &world{Namespace: n}
	w.listen(t)
	return w, network
}

// TestAnEnginesTrafficComesToTheGate: whatever its target.
func TestAnEnginesTrafficComesToTheGate(t *testing.T) {
	prepare(t)
	w, _ := engineWorld(t, true)
	for target, gate := range map[string]string{
		ocitest.OtherAddress + ":443":   "192.0.2.1:1",
		ocitest.ServerAddress + ":8080": "192.0.2.1:1",
		ocitest.ServerAddress + ":53":   "192.0.2.1:53",
		"127.0.0.11:53":                 "192.0.2.1:53",
		"[2a44::6]:443":                 "[2001:db8::1]:1",
		"[fd77::1]:53":                  "[2001:db8::1]:53",
	} {
		tcp, udp := KindTCP, KindUDP
		if strings.HasSuffix(gate, ":53") {
			tcp, udp = KindDNSTCP, KindDNSUDP
		}
		if _, err := connect(t, w.Namespace, target); err != nil {
			t.Errorf("%s: %v", target, err)
			continue
		}
		if got := accept1(t, w.at(t, tcp, gate)).LocalAddr().String(); got != target {
			t.Errorf("%s arrived for %s", target, got)
		}
		agent, err := datagrams(t, w.Namespace, "", target)
		if err != nil {
			t.Fatal(err)
		}
		io.WriteString(agent, "question")
		got := receive(t, w.at(t, udp, gate))
		if got.text != "question" || got.target.String() != target {
			t.Errorf("%s: %+v", target, got)
		}
	}
	if _, err := connect(t, w.Namespace, "127.0.0.11:5353"); !errors.Is(err, unix.ECONNREFUSED) {
		t.Errorf("another port of the engine's resolver: %v", err)
	}
}

// TestTheGatesSocketsLeave: no other socket does, with any option that needs no privilege.
func TestTheGatesSocketsLeave(t *testing.T) {
	prepare(t)
	w, network := engineWorld(t, true)
	to := netip.MustParseAddrPort(ocitest.AllowedAddress + ":80")
	const soon = time.Second // for packets that never come
	reach := func(wait time.Duration, prepare func(fd int) error) error {
		fd, err := w.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC)
		if err != nil {
			t.Fatal(err)
		}
		defer unix.Close(fd)
		if err := prepare(fd); err != nil {
			t.Fatal(err)
		}
		timeout := unix.NsecToTimeval(int64(wait))
		if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &timeout); err != nil {
			t.Fatal(err)
		}
		return unix.Connect(fd, sockaddr(to))
	}
	if err := reach(patience(), func(int) error { return nil }); err != nil {
		t.Errorf("the gate's: %v", err)
	}
	unmarked := func(fd int) error { return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_MARK, 0) }
	w.hangUp()
	if err := reach(patience(), unmarked); !errors.Is(err, unix.ECONNREFUSED) {
		t.Errorf("without the gate: %v", err)
	}
	bound := func(fd int) error { return errors.Join(unmarked(fd), unix.BindToDevice(fd, "eth0")) }
	if err := reach(soon, bound); err == nil {
		t.Error("a socket that is bound to the interface left")
	}
	if err := w.Clear(testOwner); err != nil {
		t.Fatal(err)
	}
	for name, prepare := range map[string]func(int) error{"unmarked": unmarked, "bound to the interface": bound} { // controls
		if err := reach(patience(), prepare); err != nil {
			t.Errorf("afterwards, %s: %v", name, err)
		}
	}
	network.Do(func() error {
		out, err := exec.Command(testhost.Tool(t, "ip"), "rule").CombinedOutput()
		if strings.Contains(string(out), "fwmark") {
			t.Errorf("left behind: %s", out)
		}
		return err
	})
}

// TestWhatBeganOutsideIsAnswered: packets that only look like answers do not leave. An IPv6
// socket may use any source address, and a datagram to itself begins a connection whose answer
// would leave.
func TestWhatBeganOutsideIsAnswered(t *testing.T) {
	prepare(t)
	w, network := engineWorld(t, true)
	inside := listenInside(t, network, "[fd77::2]:7000")
	var outside net.PacketConn
	network.DoOutside(func() (err error) { outside, err = net.ListenPacket("udp", "[fd77::1]:7001"); return err })
	t.Cleanup(func() { outside.Close() })
	exchange := func(wait time.Duration) (string, error) {
		buffer := make([]byte, 100)
		inside.SetReadDeadline(time.Now().Add(patience()))
		if _, from, err := inside.ReadFrom(buffer); err != nil {
			t.Fatal(err)
		} else if _, err := inside.WriteTo([]byte("answer"), from); err != nil {
			return "", err
		}
		outside.SetReadDeadline(time.Now().Add(wait))
		n, _, err := outside.ReadFrom(buffer)
		return string(buffer[:n]), err
	}
	forge(t, network, "[fd77::1]:7001", "[fd77::2]:7000")
	if got, err := exchange(time.Second); err == nil {
		t.Errorf("an answer to a forged question left: %q", got)
	}
	// The state of the forged connection has the same five-tuple, so this uses another port.
	other := listenInside(t, network, "[fd77::2]:7002")
	inside = other
	if _, err := outside.WriteTo([]byte("question"), other.LocalAddr()); err != nil {
		t.Fatal(err)
	}
	if got, err := exchange(patience()); got != "answer" {
		t.Errorf("the answer to a true question: %q, %v", got, err)
	}
	if err := w.Clear(testOwner); err != nil {
		t.Fatal(err)
	}
	forge(t, network, "[fd77::1]:7001", "[fd77::2]:7002") // control
	if got, err := exchange(patience()); got != "answer" {
		t.Errorf("without rules: %q, %v", got, err)
	}
}

func listenInside(t *testing.T, network *ocitest.Network, at string) net.PacketConn {
	t.Helper()
	var conn net.PacketConn
	network.Do(func() (err error) { conn, err = net.ListenPacket("udp", at); return err })
	t.Cleanup(func() { conn.Close() })
	return conn
}

// forge sends a datagram inside with another source address.
func forge(t *testing.T, network *ocitest.Network, from, to string) {
	t.Helper()
	network.Do(func() error {
		fd, err := unix.Socket(unix.AF_INET6, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		const freebind = 78 // IPV6_FREEBIND of linux/in6.h
		if err := unix.SetsockoptInt(fd, unix.SOL_IPV6, freebind, 1); err != nil {
			return err
		}
		if err := unix.Bind(fd, sockaddr(netip.MustParseAddrPort(from))); err != nil {
			return err
		}
		return unix.Sendto(fd, []byte("forged"), 0, sockaddr(netip.MustParseAddrPort(to)))
	})
}

// TestASilentNamespaceHasLoopback: nothing else works, from either side.
func TestASilentNamespaceHasLoopback(t *testing.T) {
	prepare(t)
	w, network := engineWorld(t, false)
	conn := listenInside(t, network, ocitest.InsideAddress+":7000")
	own, err := datagrams(t, w.Namespace, "", ocitest.InsideAddress+":7000")
	if err != nil {
		t.Fatal(err)
	}
	io.WriteString(own, "own")
	var outside net.Conn
	network.DoOutside(func() (err error) { outside, err = net.Dial("udp", ocitest.InsideAddress+":7000"); return err })
	defer outside.Close()
	io.WriteString(outside, "foreign")
	buffer := make([]byte, 100)
	conn.SetReadDeadline(time.Now().Add(time.Second))
	for {
		n, _, err := conn.ReadFrom(buffer)
		if err != nil {
			break
		}
		if got := string(buffer[:n]); got != "own" {
			t.Errorf("received %q", got)
		}
	}
	if _, err := connect(t, w.Namespace, ocitest.AllowedAddress+":80"); err == nil {
		t.Error("it reached a server")
	}
	if err := w.Clear(testOwner); err != nil {
		t.Fatal(err)
	}
	if _, err := connect(t, w.Namespace, ocitest.AllowedAddress+":80"); err != nil {
		t.Errorf("control: %v", err)
	}
}

// TestAnEnginesNamespaceIsChecked: the check comes before any change of it.
func TestAnEnginesNamespaceIsChecked(t *testing.T) {
	prepare(t)
	w, network := engineWorld(t, true)
	plan, err := EnginePlan(w.Namespace, true, "another", testPolicy)
	if err != nil {
		t.Fatal(err)
	}
	if err := plan.Apply(w.Namespace); !errors.Is(err, ErrRuled) {
		t.Errorf("a second plan: %v", err)
	}
	for policy, want := range map[string]bool{testPolicy: true, "c10f": false} {
		if serves, err := w.Serves(policy); err != nil || serves != want {
			t.Errorf("policy %s: %v, %v", policy, serves, err)
		}
	}
	network.Do(func() error { return os.WriteFile("/proc/sys/net/ipv4/tcp_fwmark_accept", []byte("1"), 0) })
	if _, err := EnginePlan(w.Namespace, true, testOwner, testPolicy); err == nil || !strings.Contains(err.Error(), "tcp_fwmark_accept") {
		t.Errorf("with marks that are inherited: %v", err)
	}
	for _, flags := range []uintptr{syscall.CLONE_NEWNET, syscall.CLONE_NEWNET | syscall.CLONE_NEWUSER} {
		process := exec.Command(testhost.Tool(t, "sleep"), "600")
		process.SysProcAttr = &syscall.SysProcAttr{Cloneflags: flags}
		if err := process.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { process.Process.Kill(); process.Wait() })
		start, err := pidfd.StartTime(process.Process.Pid)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := OpenProcess(process.Process.Pid, start+1); err == nil || !strings.Contains(err.Error(), "another one") {
			t.Errorf("another start time: %v", err)
		}
		n, held, err := OpenProcess(process.Process.Pid, start)
		if owned := flags&syscall.CLONE_NEWUSER != 0; owned != (err != nil) {
			t.Errorf("user namespace %v: %v", owned, err)
		}
		if err == nil {
			n.Close()
			held.Close()
		}
	}
}
