//go:build root

package netns

import (
	"context"
	"errors"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/internal/testhost"
)

// TestWithoutAGateThereIsNoNetwork: a new gate restores it.
func TestWithoutAGateThereIsNoNetwork(t *testing.T) {
	prepare(t)
	p := newPlan(Config{Everything: true, HostPorts: []uint16{5432}}, true)
	w := listening(t, p)
	all := []string{"203.0.113.5:443", "203.0.113.5:53", "127.0.0.11:53", "127.0.0.1:5432", "[2620:fe::fe]:443", "[::1]:5432"}
	reach := func(when string, want error) {
		t.Helper()
		for _, target := range all {
			if _, err := connect(t, w.Namespace, target); !errors.Is(err, want) {
				t.Errorf("%s: %s: %v, want %v", when, target, err, want)
			}
			agent, err := datagrams(t, w.Namespace, "", target)
			if err != nil {
				t.Fatal(err)
			}
			io.WriteString(agent, "?")
			if want == nil || strings.HasSuffix(target, ":5432") {
				continue // there is no answer to wait for; host ports have no UDP
			}
			if _, err := agent.Read(make([]byte, 1)); !errors.Is(err, want) {
				t.Errorf("%s: datagram to %s: %v, want %v", when, target, err, want)
			}
		}
	}
	reach("with a gate", nil)
	w.hangUp()
	reach("without", unix.ECONNREFUSED)

	agent := exec.Command(testhost.Tool(t, "sleep"), "600")
	if err := w.do(agent.Start); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { agent.Process.Kill(); agent.Wait() })
	adopted, err := Open("/proc/" + strconv.Itoa(agent.Process.Pid) + "/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { adopted.Close() })
	for range 2 { // the second time replaces the first
		if err := p.Apply(adopted); err != nil {
			t.Fatal(err)
		}
	}
	second := &world{Namespace: adopted}
	second.listen(t)
	reach("with a second gate", nil)
}

func TestOpenRefusesWhatIsNoAgentsNetwork(t *testing.T) {
	prepare(t)
	for _, path := range []string{"/proc/self/ns/net", "/proc/self/ns/mnt", "/dev/null", t.TempDir(), "/proc/self/ns/absent"} {
		if n, err := Open(path); err == nil {
			n.Close()
			t.Errorf("opened %s", path)
		}
	}
	n, err := Open(made(t, Plan{}).Path()) // control
	if err != nil {
		t.Fatal(err)
	}
	n.Close()
	if _, err := n.Listen(); !errors.Is(err, errClosed) {
		t.Errorf("closed: %v", err)
	}
}

func TestListenIsAllOrNothing(t *testing.T) {
	prepare(t)
	w := &world{Namespace: made(t, newPlan(Config{Everything: true, HostPorts: []uint16{5432}}, true))}
	var squatter *os.File
	err := w.do(func() (err error) {
		squatter, err = socket{kind: KindHostPort, at: netip.MustParseAddrPort("127.0.0.1:5432")}.open()
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if sockets, err := w.Listen(); !errors.Is(err, unix.EADDRINUSE) || sockets != nil {
		t.Errorf("%v, %v", sockets, err)
	}
	squatter.Close()
	w.listen(t) // so the failed call kept no socket open
}

func TestWithoutIPv6ItFailsClosed(t *testing.T) {
	prepare(t)
	w := listening(t, newPlan(Config{Everything: true}, false))
	if _, err := connect(t, w.Namespace, "[2620:fe::fe]:443"); !errors.Is(err, unix.ENETUNREACH) && !errors.Is(err, unix.EADDRNOTAVAIL) {
		t.Errorf("IPv6: %v", err)
	}
	if _, err := connect(t, w.Namespace, "203.0.113.5:443"); err != nil {
		t.Errorf("control: %v", err)
	}
}

func TestPublishedPortsAreOnLoopback(t *testing.T) {
	prepare(t)
	w := listening(t, newPlan(Config{Everything: true}, true))
	for _, address := range []string{"127.0.0.1:8080", "[::1]:8081", "0.0.0.0:8082"} {
		at := netip.MustParseAddrPort(address)
		var listener *os.File
		err := w.do(func() (err error) {
			listener, err = socket{kind: KindHostPort, at: at}.open() // as a program of the agent would
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		defer listener.Close()
		inside, err := w.DialPort(t.Context(), at.Port())
		if err != nil {
			t.Fatal(err)
		}
		through(t, conn(t, inside), accept1(t, listener), "hello "+address)
	}
	if _, err := w.DialPort(t.Context(), 9); !errors.Is(err, unix.ECONNREFUSED) {
		t.Errorf("no process listens: %v", err)
	}
}

// TestDialPortEndsWithItsContext: with a listener whose backlog is full.
func TestDialPortEndsWithItsContext(t *testing.T) {
	prepare(t)
	n := made(t, Plan{})
	at := netip.MustParseAddrPort("127.0.0.1:8080")
	var full *os.File
	err := n.do(func() (err error) {
		full, err = socket{kind: KindHostPort, at: at}.open()
		if err != nil {
			return err
		}
		return control(full, func(fd int) error { return unix.Listen(fd, 0) })
	})
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	first, err := n.DialPort(t.Context(), at.Port()) // control: there is room for one
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	for {
		file, err := n.DialPort(ctx, at.Port())
		if err != nil {
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Error(err)
			}
			return
		}
		defer file.Close()
	}
}

// TestGetaddrinfoSeesBothVersions: also for a program that uses AI_ADDRCONFIG.
func TestGetaddrinfoSeesBothVersions(t *testing.T) {
	prepare(t)
	n, bare := made(t, newPlan(Config{Everything: true}, true)), made(t, Plan{})
	for _, family := range []string{"AF_INET, '203.0.113.5'", "AF_INET6, '2620:fe::fe'"} {
		ask := func(n *Namespace) error {
			family, address, _ := strings.Cut(family, ", ")
			script := "import socket as s; s.getaddrinfo(" + address + ", 80, s." + family + ", flags=s.AI_ADDRCONFIG)"
			return exec.Command("nsenter", "--net="+n.Path(), testhost.Tool(t, "python3"), "-c", script).Run()
		}
		if err := ask(n); err != nil {
			t.Errorf("%s: %v", family, err)
		}
		if ask(bare) == nil {
			t.Errorf("control: %s is there without an address", family)
		}
	}
}

func TestHostOwns(t *testing.T) {
	prepare(t)
	ruled, bare := made(t, newPlan(Config{Everything: true}, true)), made(t, Plan{})
	for _, c := range []struct {
		address     string
		ruled, bare bool
	}{
		{"127.0.0.1", true, true},
		{"127.255.255.255", true, true},
		{"::1", true, true},
		{"0.0.0.0", true, true},
		{"::", true, true},
		{"224.0.0.251", true, true},
		{"ff02::fb", true, true},
		{"::ffff:127.0.0.1", true, true},
		{"203.0.113.5", true, false}, // local only by the route: AnyIP
		{"::ffff:203.0.113.5", true, false},
		{"2620:fe::fe", true, false},
	} {
		for n, want := range map[*Namespace]bool{ruled: c.ruled, bare: c.bare} {
			err := n.do(func() error {
				got, err := HostOwns(netip.MustParseAddr(c.address))
				if got != want {
					t.Errorf("%s: %t, want %t", c.address, got, want)
				}
				return err
			})
			if err != nil {
				t.Errorf("%s: %v", c.address, err)
			}
		}
	}
}

// TestAFreshNamespaceHasTheDefaults: those on which the plan relies come from the kernel, not
// from the host.
func TestAFreshNamespaceHasTheDefaults(t *testing.T) {
	prepare(t)
	n := made(t, NewPlan(Config{Everything: true}))
	for name, want := range map[string]int{"core/somaxconn": backlog, "ipv4/tcp_syncookies": 1} {
		var value []byte
		err := n.do(func() (err error) { value, err = os.ReadFile("/proc/sys/net/" + name); return err })
		if got, parse := strconv.Atoi(strings.TrimSpace(string(value))); err != nil || parse != nil || got < want {
			t.Errorf("%s is %q, %v; want %d", name, value, err, want)
		}
	}
}

func TestProbeFindsWhatItNeeds(t *testing.T) {
	prepare(t)
	if err := Probe(); err != nil {
		t.Error(err)
	}
}
