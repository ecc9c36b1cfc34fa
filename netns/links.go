package netns

import (
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// route makes every address of one IP version local to the namespace.
type route struct{ to, source netip.Prefix }

func (r route) String() string { return fmt.Sprintf("local %s dev lo src %s", r.to, r.source.Addr()) }

// routes makes every address local, so that the kernel accepts a packet to any address on
// loopback instead of reporting "network unreachable". An engine's namespace gets policy
// routes instead, which leave its own routes alone.
func (p Plan) routes() []route {
	if !p.everything || p.engine {
		return nil
	}
	routes := []route{{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("127.0.0.1/32")}}
	if p.ipv6 {
		routes = append(routes, route{netip.MustParsePrefix("::/0"), loopback6})
	}
	return routes
}

// addresses are those beside 127.0.0.1 and ::1, see own4.
func (p Plan) addresses() []netip.Prefix {
	if !p.everything || p.engine {
		return nil
	}
	if p.ipv6 {
		return []netip.Prefix{own4, own6}
	}
	return []netip.Prefix{own4}
}

// raiseLoopback brings lo up: it is down in a new network namespace, and without it not
// even 127.0.0.1 works.
func raiseLoopback() error {
	loopback, err := netlink.LinkByName("lo")
	if err != nil {
		return fmt.Errorf("cannot find the loopback interface: %w", err)
	}
	if err := netlink.LinkSetUp(loopback); err != nil {
		return fmt.Errorf("cannot bring up the loopback interface: %w", err)
	}
	return nil
}

// loopbackIndex is LOOPBACK_IFINDEX of include/net/flow.h: the first interface
// of every network namespace.
const loopbackIndex = 1

// addAddresses replaces instead of adding, so that Apply may run again on the same namespace.
func addAddresses(addresses []netip.Prefix) error {
	for _, a := range addresses {
		loopback := &netlink.Device{LinkAttrs: netlink.LinkAttrs{Index: loopbackIndex}}
		// Without IFA_F_NODAD, duplicate address detection makes an IPv6 address usable only some time later.
		if err := netlink.AddrReplace(loopback, &netlink.Addr{IPNet: ipNet(a), Flags: unix.IFA_F_NODAD}); err != nil {
			return fmt.Errorf("cannot give loopback the address %s: %w", a, err)
		}
	}
	return nil
}

// addRoutes puts the routes into the local table, where the kernel looks first.
func addRoutes(routes []route) error {
	for _, r := range routes {
		err := netlink.RouteReplace(&netlink.Route{
			LinkIndex: loopbackIndex, Dst: ipNet(r.to), Src: r.source.Addr().AsSlice(),
			Type: unix.RTN_LOCAL, Table: unix.RT_TABLE_LOCAL, Scope: netlink.SCOPE_HOST,
		})
		if err != nil {
			return fmt.Errorf("cannot add route %s: %w", r, err)
		}
	}
	return nil
}

func ipNet(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}
