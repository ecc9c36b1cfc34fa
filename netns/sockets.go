package netns

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"

	"golang.org/x/sys/unix"

	"clove.run/clove/internal/descriptor"
)

// option is a socket option with its IPv4 and IPv6 constants.
type option struct {
	name           string
	level4, named4 int
	level6, named6 int
}

var (
	optReuse       = option{"SO_REUSEADDR", unix.SOL_SOCKET, unix.SO_REUSEADDR, unix.SOL_SOCKET, unix.SO_REUSEADDR}
	optTransparent = option{"IP_TRANSPARENT", unix.SOL_IP, unix.IP_TRANSPARENT, unix.SOL_IPV6, unix.IPV6_TRANSPARENT}
	optOriginal    = option{"IP_RECVORIGDSTADDR", unix.SOL_IP, unix.IP_RECVORIGDSTADDR, unix.SOL_IPV6, unix.IPV6_RECVORIGDSTADDR}
)

// set enables options, by the constants of the socket's own family.
func set(fd int, family netip.Addr, options ...option) error {
	for _, o := range options {
		level, named := o.level4, o.named4
		if family.Is6() {
			level, named = o.level6, o.named6
		}
		if err := unix.SetsockoptInt(fd, level, named, 1); err != nil {
			return fmt.Errorf("cannot set %s: %w", o.name, err)
		}
	}
	return nil
}

// open makes a socket in the calling thread's network namespace; a socket stays in that
// namespace wherever it is used. prepare runs before os.NewFile registers the descriptor
// with Go's poller, because a stream socket that is neither connected nor listening polls
// as hung up.
func open(kind int, address netip.AddrPort, name string, prepare func(fd int) error) (*os.File, error) {
	domain := unix.AF_INET
	if address.Addr().Is6() {
		domain = unix.AF_INET6
	}
	fd, err := unix.Socket(domain, kind|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	// IPv4 has sockets of its own, at the same ports.
	if domain == unix.AF_INET6 {
		err = os.NewSyscallError("setsockopt", unix.SetsockoptInt(fd, unix.SOL_IPV6, unix.IPV6_V6ONLY, 1))
	}
	if err == nil {
		err = prepare(fd)
	}
	if err != nil {
		unix.Close(fd)
		return nil, err
	}
	return os.NewFile(uintptr(fd), name), nil
}

func sockaddr(a netip.AddrPort) unix.Sockaddr {
	if a.Addr().Is4() {
		return &unix.SockaddrInet4{Port: int(a.Port()), Addr: a.Addr().As4()}
	}
	return &unix.SockaddrInet6{Port: int(a.Port()), Addr: a.Addr().As16()}
}

// Flow makes the inside half of a UDP flow. Data written to it reaches the agent's
// socket with target as its source. Data that the agent sends to target from that socket is
// then read here and not from the socket of KindUDP, because the kernel prefers a connected
// socket.
func (n *Namespace) Flow(agent, target netip.AddrPort) (*os.File, error) {
	agent, target = unmapped(agent), unmapped(target)
	if agent.Addr().Is4() != target.Addr().Is4() || !agent.IsValid() || !target.IsValid() {
		return nil, fmt.Errorf("cannot make a flow between %s and %s: not of one IP version", agent, target)
	}
	var file *os.File
	err := n.do(func() (err error) {
		file, err = open(unix.SOCK_DGRAM, target, fmt.Sprintf("flow %s-%s", agent, target), func(fd int) error {
			// SO_REUSEADDR: all flows to one target are bound to the same address.
			if err := set(fd, target.Addr(), optTransparent, optReuse); err != nil {
				return err
			}
			if err := unix.Bind(fd, sockaddr(target)); err != nil {
				return os.NewSyscallError("bind", err)
			}
			return os.NewSyscallError("connect", unix.Connect(fd, sockaddr(agent)))
		})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("cannot make a flow between %s and %s: %w", agent, target, err)
	}
	return file, nil
}

func unmapped(a netip.AddrPort) netip.AddrPort {
	return netip.AddrPortFrom(a.Addr().Unmap(), a.Port())
}

// DialPort connects to a TCP port of the agent's loopback: at 127.0.0.1, or if nothing
// listens there at ::1. The file is non-blocking.
func (n *Namespace) DialPort(ctx context.Context, port uint16) (*os.File, error) {
	file, err := n.dial(ctx, netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), port))
	if err == nil {
		return file, nil
	}
	file, err6 := n.dial(ctx, netip.AddrPortFrom(loopback6.Addr(), port))
	if err6 == nil {
		return file, nil
	}
	if cause := ctx.Err(); cause != nil {
		err = errors.Join(err, cause)
	}
	return nil, fmt.Errorf("cannot connect to the agent's port %d: %w", port, err)
}

// dial connects on the thread inside, but waits outside of do, so that a slow connection
// does not block other users of the thread.
func (n *Namespace) dial(ctx context.Context, to netip.AddrPort) (*os.File, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	var pending bool
	var file *os.File
	err := n.do(func() (err error) {
		file, err = open(unix.SOCK_STREAM, to, "inside "+to.String(), func(fd int) error {
			err := unix.Connect(fd, sockaddr(to))
			// Not an error: the socket is non-blocking, and the wait comes below.
			if pending = err == unix.EINPROGRESS; pending {
				return nil
			}
			return os.NewSyscallError("connect", err)
		})
		return err
	})
	if err != nil || !pending {
		return file, err
	}
	if err := descriptor.Connected(ctx, file); err != nil {
		file.Close()
		return nil, os.NewSyscallError("connect", err)
	}
	return file, nil
}
