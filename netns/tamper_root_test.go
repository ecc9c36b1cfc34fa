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

	"github.com/google/nftables"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"clove.run/clove/internal/testhost"
)

// tampers are changes that would open the network, for a process that may make them.
var tampers = []struct {
	name string
	try  func() error
}{
	{"transparent socket", func() error {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		return unix.SetsockoptInt(fd, unix.SOL_IP, unix.IP_TRANSPARENT, 1)
	}},
	{"the gate's port", func() error {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		return unix.Bind(fd, sockaddr(netip.AddrPortFrom(gate4, gatePort)))
	}},
	{"raw socket", func() error {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.IPPROTO_ICMP)
		if err == nil {
			unix.Close(fd)
		}
		return err
	}},
	{"sysctl", func() error {
		return os.WriteFile("/proc/sys/net/ipv4/ip_unprivileged_port_start", []byte("0"), 0)
	}},
	{"address", func() error {
		return addAddresses([]netip.Prefix{netip.MustParsePrefix("203.0.113.5/32")})
	}},
	{"route", func() error {
		return netlink.RouteDel(&netlink.Route{LinkIndex: loopbackIndex, Dst: ipNet(netip.MustParsePrefix("0.0.0.0/0")),
			Type: unix.RTN_LOCAL, Table: unix.RT_TABLE_LOCAL, Scope: netlink.SCOPE_HOST})
	}},
	{"interface", func() error {
		return netlink.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "out"}, PeerName: "in"})
	}},
	{"nft table", func() error {
		connection, err := nftables.New()
		if err != nil {
			return err
		}
		connection.DelTable(&nftables.Table{Family: nftables.TableFamilyINet, Name: tableName})
		return connection.Flush()
	}},
	{"loopback down", func() error {
		return netlink.LinkSetDown(&netlink.Device{LinkAttrs: netlink.LinkAttrs{Index: loopbackIndex}})
	}},
}

const tamperEnvironment = "CLOVE_NETNS_TAMPER"

// TestTamperProcess is the second process of the test below.
func TestTamperProcess(t *testing.T) {
	if os.Getenv(tamperEnvironment) == "" {
		return // the test below runs it
	}
	for _, c := range tampers {
		result := "done"
		if err := c.try(); errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) {
			result = "refused"
		} else if err != nil {
			result = err.Error()
		}
		fmt.Printf("tamper %s: %s\n", c.name, result)
	}
}

func TestRootOfAnotherUserNamespaceChangesNothing(t *testing.T) {
	prepare(t)
	p := newPlan(Config{Everything: true}, true)
	w := listening(t, p)
	agent := tamper(t, w.Namespace, &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{HostID: 0x7ffe0000, Size: 1000}},
		GidMappings: []syscall.SysProcIDMap{{HostID: 0x7ffe0000, Size: 1000}},
		// Without it the process would have all capabilities there, and still the uid of the
		// host's root.
		Credential: &syscall.Credential{NoSetGroups: true},
	})
	// Control: the host's root can make each change, in another such namespace.
	host := tamper(t, made(t, p), &syscall.SysProcAttr{})
	for _, c := range tampers {
		if want := fmt.Sprintf("tamper %s: refused\n", c.name); !strings.Contains(agent, want) {
			t.Errorf("the agent's root said\n%s, want %q", agent, want)
		}
		if want := fmt.Sprintf("tamper %s: done\n", c.name); !strings.Contains(host, want) {
			t.Errorf("the host's root said\n%s, want %q", host, want)
		}
	}
	if _, err := connect(t, w.Namespace, "203.0.113.5:443"); err != nil {
		t.Errorf("afterwards: %v", err)
	}
	if got := accept1(t, w.at(t, KindTCP, "192.0.2.1:1")).LocalAddr().String(); got != "203.0.113.5:443" {
		t.Errorf("afterwards the gate accepted for %s", got)
	}
}

// tamper runs TestTamperProcess inside n.
func tamper(t *testing.T, n *Namespace, attributes *syscall.SysProcAttr) string {
	t.Helper()
	var out []byte
	err := n.do(func() (err error) {
		command := exec.Command("/proc/self/exe", "-test.run=^TestTamperProcess$")
		command.Env = append(os.Environ(), tamperEnvironment+"=1")
		command.SysProcAttr = attributes
		out, err = command.CombinedOutput()
		return err
	})
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return string(out)
}

// TestTheHostIsAsItWas compares the host's tables and captures on its loopback while an agent
// sends.
func TestTheHostIsAsItWas(t *testing.T) {
	prepare(t)
	before := hostNetwork(t)
	capture := captureLoopback(t)
	w := listening(t, newPlan(Config{Everything: true, HostPorts: []uint16{5432}}, true))
	const marker = "marker of an agent"
	for _, target := range []string{"203.0.113.5:443", "203.0.113.5:53", "[2620:fe::fe]:443", "127.0.0.1:4000"} {
		agent, err := datagrams(t, w.Namespace, "", target)
		if err != nil {
			t.Fatal(err)
		}
		agent.WriteString(marker) // the capture shows whether it arrives
	}
	receive(t, w.at(t, KindUDP, "192.0.2.1:1"))
	// Control: the capture works, and in order: an earlier packet would be seen.
	const end = "marker of the host"
	host, err := testhostLoopback(t)
	if err != nil {
		t.Fatal(err)
	}
	host.WriteString(end)
	for packet := ""; !strings.Contains(packet, end); {
		packet = receive(t, capture).text
		if strings.Contains(packet, marker) {
			t.Errorf("on the host's loopback: %q", packet)
		}
	}
	if after := hostNetwork(t); after != before {
		t.Errorf("the host had\n%s\nand has\n%s", before, after)
	}
}

func captureLoopback(t *testing.T) *os.File {
	t.Helper()
	all := uint16(unix.ETH_P_ALL<<8 | unix.ETH_P_ALL>>8) // network byte order, packet(7)
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, int(all))
	if err != nil {
		t.Fatal(err)
	}
	file := os.NewFile(uintptr(fd), "capture")
	t.Cleanup(func() { file.Close() })
	if err := unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: all, Ifindex: loopbackIndex}); err != nil {
		t.Fatal(err)
	}
	return file
}

// testhostLoopback is a UDP socket of the host.
func testhostLoopback(t *testing.T) (*os.File, error) {
	t.Helper()
	to := netip.MustParseAddrPort("127.0.0.1:4000")
	file, err := open(unix.SOCK_DGRAM, to, "host", func(fd int) error { return unix.Connect(fd, sockaddr(to)) })
	if err == nil {
		t.Cleanup(func() { file.Close() })
	}
	return file, err
}

// hostNetwork returns the host's links, addresses, routes, rules and nft tables.
func hostNetwork(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	for _, arguments := range []string{"-o link", "-o address", "route show table all", "-6 route show table all", "rule"} {
		out, err := exec.Command(testhost.Tool(t, "ip"), strings.Fields(arguments)...).CombinedOutput()
		if err != nil {
			t.Fatalf("ip %s: %v: %s", arguments, err, out)
		}
		b.Write(out)
	}
	connection, err := nftables.New()
	if err != nil {
		t.Fatal(err)
	}
	tables, err := connection.ListTables()
	if err != nil {
		t.Fatal(err)
	}
	for _, table := range tables {
		fmt.Fprintf(&b, "nft table %d %s, %d uses\n", table.Family, table.Name, table.Use)
	}
	return b.String()
}
