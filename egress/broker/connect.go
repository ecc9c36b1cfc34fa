package broker

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// outside makes the sockets of the outside leg.
type outside struct {
	socket func(family, kind int) (int, error)
}

// ownNetwork is that of this process.
var ownNetwork = outside{func(family, kind int) (int, error) { return unix.Socket(family, kind, 0) }}

// Dial connects to an address by a socket of Config.Socket's sort; network is
// tcp4, tcp6, udp4 or udp6. The file does not block.
func Dial(ctx context.Context, socket func(family, kind int) (int, error), network string, to netip.AddrPort) (*os.File, error) {
	return outside{socket}.dial(ctx, network, to)
}

// dial connects to an address, never to a name. It is net.Dialer's work without
// what the broker has no use for: the socket leaves this process at once, so
// it is not set up for reading, and who relays sets its options. That is a fifth
// of what the gate adds to a new connection. A plain socket also never
// broadcasts (net sets SO_BROADCAST), and has one peer address (no MPTCP).
func (o outside) dial(ctx context.Context, network string, to netip.AddrPort) (*os.File, error) {
	file, err := o.connect(ctx, network, to)
	if err != nil {
		return nil, fmt.Errorf("cannot connect to %s over %s: %w", to, network[:3], err)
	}
	return file, nil
}

func (o outside) connect(ctx context.Context, network string, to netip.AddrPort) (*os.File, error) {
	kind := unix.SOCK_STREAM
	if network == "udp4" || network == "udp6" {
		kind = unix.SOCK_DGRAM
	}
	family, address := socketName(to)
	fd, err := o.socket(family, kind|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	file := os.NewFile(uintptr(fd), "outside")
	if err := unix.Connect(fd, address); err != nil && err != unix.EINPROGRESS {
		file.Close()
		return nil, err
	}
	// A near peer has answered before connect(2) returns: nobody waits for it.
	peer, err := socketAddress(unix.Getpeername(fd))
	if err != nil {
		peer, err = awaitPeer(ctx, file)
	}
	if err == nil {
		err = leadsTo(fd, peer, to)
	}
	if err != nil {
		file.Close()
		return nil, err
	}
	return file, nil
}

func socketName(to netip.AddrPort) (family int, address unix.Sockaddr) {
	if to.Addr().Is4() {
		return unix.AF_INET, &unix.SockaddrInet4{Port: int(to.Port()), Addr: to.Addr().As4()}
	}
	return unix.AF_INET6, &unix.SockaddrInet6{Port: int(to.Port()), Addr: to.Addr().As16(), ZoneId: zoneID(to.Addr().Zone())}
}

// zoneID is the interface of a link-local name server; rules allow no such target.
func zoneID(zone string) uint32 {
	if zone == "" {
		return 0
	}
	if link, err := net.InterfaceByName(zone); err == nil {
		return uint32(link.Index)
	}
	number, _ := strconv.ParseUint(zone, 10, 32) // 0 leads nowhere
	return uint32(number)
}

// awaitPeer waits until the socket is connected, or cannot be, or ctx ends.
func awaitPeer(ctx context.Context, file *os.File) (netip.AddrPort, error) {
	defer context.AfterFunc(ctx, func() { _ = file.SetWriteDeadline(time.Unix(1, 0)) })() // of a file that is open
	raw, err := file.SyscallConn()
	if err != nil {
		return netip.AddrPort{}, err
	}
	var peer netip.AddrPort
	var outcome error
	err = raw.Write(func(fd uintptr) bool {
		code, err := unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_ERROR) // connect(2), EINPROGRESS
		if err == nil && code != 0 {
			err = unix.Errno(code)
		}
		if err != nil {
			outcome = err
			return true
		}
		peer, err = socketAddress(unix.Getpeername(int(fd)))
		return err == nil
	})
	if ctx.Err() != nil {
		return netip.AddrPort{}, ctx.Err()
	}
	return peer, errors.Join(err, outcome)
}

// leadsTo asks the kernel where the socket really leads: a program in the
// cgroup may send it elsewhere (BPF), and a socket whose own port was chosen to
// be the wanted one is connected to itself, where nobody listens.
func leadsTo(fd int, peer, want netip.AddrPort) error {
	if want = netip.AddrPortFrom(want.Addr().WithZone(""), want.Port()); peer != want { // a peer is told without
		return fmt.Errorf("it leads to %s", peer)
	}
	own, err := socketAddress(unix.Getsockname(fd))
	if err == nil && own == peer {
		err = unix.ECONNREFUSED
	}
	return err
}
