//go:build root

package integration

import (
	"encoding/json"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/nftables"
	"github.com/vishvananda/netlink"

	"clove.run/clove/integration/probe"
)

// flushRules tries to change the rules of its own network namespace in every way, with the
// rights of its caller.
func flushRules([]string) error {
	loopback, err := netlink.LinkByName("lo")
	if err != nil {
		return err
	}
	out := json.NewEncoder(os.Stdout)
	for _, way := range waysToTamper(loopback) {
		err := way.try()
		r := probe.Result{Probe: way.name, OK: err == nil}
		if err != nil {
			r.Errno = err.Error()
		}
		if err := out.Encode(r); err != nil {
			return err
		}
	}
	return nil
}

type wayToTamper struct {
	name string
	try  func() error
}

// The last of waysToTamper leaves nothing for others to change.
func waysToTamper(loopback netlink.Link) []wayToTamper {
	_, everything, _ := net.ParseCIDR("0.0.0.0/0")
	return []wayToTamper{
		{"sysctl ip_nonlocal_bind", func() error { return os.WriteFile("/proc/sys/net/ipv4/ip_nonlocal_bind", []byte("1"), 0) }},
		{"sysctl route_localnet", func() error { return os.WriteFile("/proc/sys/net/ipv4/conf/lo/route_localnet", []byte("1"), 0) }},
		{"sysctl ping_group_range", func() error {
			return os.WriteFile("/proc/sys/net/ipv4/ping_group_range", []byte("0 2147483647"), 0)
		}},
		{"add address", func() error {
			return netlink.AddrAdd(loopback, &netlink.Addr{IPNet: &net.IPNet{IP: net.IPv4(9, 1, 1, 1), Mask: net.CIDRMask(32, 32)}})
		}},
		{"add route", func() error {
			return netlink.RouteAdd(&netlink.Route{LinkIndex: loopback.Attrs().Index, Dst: &net.IPNet{IP: net.IPv4(9, 2, 2, 0).To4(), Mask: net.CIDRMask(24, 32)}})
		}},
		{"delete route", func() error {
			return netlink.RouteDel(&netlink.Route{LinkIndex: loopback.Attrs().Index, Dst: everything, Table: 255, Type: syscall.RTN_LOCAL, Scope: netlink.SCOPE_HOST})
		}},
		{"add rule", func() error {
			rule := netlink.NewRule()
			rule.Table, rule.Mark = 254, 7
			return netlink.RuleAdd(rule)
		}},
		{"add link", func() error {
			return netlink.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "v0"}, PeerName: "v1"})
		}},
		{"list rules", func() error { _, err := (&nftables.Conn{}).ListTables(); return err }},
		{"flush rules", func() error {
			c := &nftables.Conn{}
			c.FlushRuleset()
			return c.Flush()
		}},
		{"bind transparently", func() error { return bindElsewhere("93.184.216.77:80") }},
		{"link down", func() error { return netlink.LinkSetDown(loopback) }},
	}
}

// bindElsewhere binds an address that does not belong to this host, IP_TRANSPARENT, ip(7).
func bindElsewhere(address string) error {
	at := netip.MustParseAddrPort(address)
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	defer syscall.Close(fd)
	if err := syscall.SetsockoptInt(fd, syscall.SOL_IP, syscall.IP_TRANSPARENT, 1); err != nil {
		return err
	}
	return syscall.Bind(fd, &syscall.SockaddrInet4{Port: int(at.Port()), Addr: at.Addr().As4()})
}

// TestRulesCannotBeChangedFromInside: also by root in the sandbox without a filter: every
// attempt fails, and the rules stay. The control tries the same as root in a network namespace
// that it owns.
func TestRulesCannotBeChangedFromInside(t *testing.T) {
	h := newHost(t)
	n := newInternet(t, h)
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	const own = `ip link set lo up; ip route add local default dev lo table local; exec "$0" ` + agentWord + " flush"
	out, err := n.outside("unshare", "-n", "sh", "-c", own, path)
	if err != nil {
		t.Fatalf("control: %v", err)
	}
	for name, r := range attacked(t, []byte(out)) {
		if !r.OK {
			t.Errorf("control: %s: %+v", name, r)
		}
	}
	for _, flags := range [][]string{{"--user=root"}, {"--user=root", "--seccomp=unconfined"}, {"--seccomp=unconfined"}} {
		c := n.capture(t)
		script := agentInside + " " + agentWord + " flush; printf '" + siteURL + "\\nhttp://" + evilAddress + "/\\n' | " + agentInside + " " + agentWord + " steps >&2"
		r := h.agent(self(append(flags, "--allow=api.example.com")...), "sh", "-c", script)
		for name, got := range attacked(t, []byte(r.stdout)) {
			if got.OK && name != "list rules" { // reading changes nothing, so it may succeed
				t.Errorf("%v: %s works", flags, name)
			}
			refused := slices.ContainsFunc([]error{syscall.EPERM, syscall.EACCES, syscall.EROFS}, func(e error) bool { return strings.Contains(got.Errno, e.Error()) })
			if !got.OK && !refused {
				t.Errorf("%v: %s fails for another reason: %s", flags, name, got.Errno)
			}
		}
		if strings.Count(r.stderr, reached) != 1 {
			t.Errorf("%v: %s", flags, r.stderr)
		}
		c.onlyTo(append(asks, siteEnds...)...)
	}
}
