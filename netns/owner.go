package netns

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"

	"golang.org/x/sys/unix"
)

// HostOwns reports whether the caller's network namespace would deliver a packet to a
// locally: its own addresses, addresses in routes of type local (AnyIP), broadcast and
// multicast. An address without a route is not owned.
func HostOwns(a netip.Addr) (bool, error) {
	a = a.Unmap().WithZone("")
	// A connection to the unspecified address reaches this host (ip(7)). An invalid address
	// is refused as the host's.
	if !a.IsValid() || a.IsUnspecified() || a.IsMulticast() {
		return true, nil
	}
	kind, err := routeType(a)
	for _, none := range []unix.Errno{unix.ENETUNREACH, unix.EHOSTUNREACH, unix.EACCES, unix.EINVAL, unix.EAFNOSUPPORT, unix.EOPNOTSUPP} {
		// Routes of type unreachable, prohibit and blackhole (ip-route(8)), or no IPv6 at all.
		if errors.Is(err, none) {
			return false, nil
		}
	}
	if err != nil {
		return false, fmt.Errorf("cannot look up the route to %s: %w", a, err)
	}
	// Local, broadcast, multicast and anycast routes all deliver here.
	return kind != unix.RTN_UNICAST, nil
}

// routeType asks the kernel for the route to a, rtnetlink(7). Each connection needs it, so
// it uses only three system calls. The netlink library needs ten, and a buffer that grows
// the stack of each new goroutine to 128 KiB.
func routeType(a netip.Addr) (byte, error) {
	socket, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return 0, err
	}
	defer unix.Close(socket)
	if err := unix.Sendto(socket, routeQuestion(a), 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return 0, err
	}
	var answer [1024]byte // one route with its attributes
	n, _, err := unix.Recvfrom(socket, answer[:], 0)
	if err != nil {
		return 0, err
	}
	return parseRouteType(answer[:n])
}

// routeQuestion lays out struct nlmsghdr, struct rtmsg and one RTA_DST.
func routeQuestion(a netip.Addr) []byte {
	family, address := byte(unix.AF_INET), a.AsSlice()
	if a.Is6() {
		family = unix.AF_INET6
	}
	size := unix.SizeofNlMsghdr + unix.SizeofRtMsg + unix.SizeofRtAttr + len(address)
	native := binary.NativeEndian
	m := native.AppendUint32(make([]byte, 0, size), uint32(size))
	m = native.AppendUint16(m, unix.RTM_GETROUTE)
	m = native.AppendUint16(m, unix.NLM_F_REQUEST)
	m = append(m, make([]byte, 8)...) // sequence, port id
	// The family, and the length of the address in bits. The other fields of struct rtmsg
	// stay 0.
	m = append(m, family, byte(8*len(address)), 0, 0, 0, 0, 0, 0)
	m = native.AppendUint32(m, 0) // flags
	m = native.AppendUint16(m, uint16(unix.SizeofRtAttr+len(address)))
	m = native.AppendUint16(m, unix.RTA_DST)
	return append(m, address...)
}

// parseRouteType reads rtm_type of struct rtmsg, or the errno of an error message.
func parseRouteType(answer []byte) (byte, error) {
	const typeAt = unix.SizeofNlMsghdr + 7
	if len(answer) < unix.SizeofNlMsghdr+4 {
		return 0, fmt.Errorf("an answer of %d bytes", len(answer))
	}
	switch kind := binary.NativeEndian.Uint16(answer[4:]); kind {
	case unix.NLMSG_ERROR:
		return 0, unix.Errno(-int32(binary.NativeEndian.Uint32(answer[unix.SizeofNlMsghdr:])))
	case unix.RTM_NEWROUTE:
		if len(answer) > typeAt {
			return answer[typeAt], nil
		}
	}
	return 0, errors.New("an answer that is no route")
}
