package broker

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/egress/wire"
	"clove.run/clove/internal/descriptor"
)

// traffic are the bytes of one or more sockets, as this host counts them.
type traffic struct {
	received int64
	sent     int64
}

func (t traffic) plus(u traffic) traffic {
	return traffic{t.received + u.received, t.sent + u.sent}
}

// tcpTraffic reads TCP_INFO. Sent bytes are those that were written to the socket:
// transmitted without retransmissions, plus not yet transmitted. tcpi_bytes_acked would
// include SYN and FIN; tcpi_bytes_received counts a FIN as one byte.
func tcpTraffic(fd int) (traffic, error) {
	info, err := unix.GetsockoptTCPInfo(fd, unix.IPPROTO_TCP, unix.TCP_INFO)
	if err != nil {
		return traffic{}, fmt.Errorf("cannot read TCP_INFO: %w", err)
	}
	return traffic{
		received: int64(info.Bytes_received),
		sent:     int64(info.Bytes_sent) - int64(info.Bytes_retrans) + int64(info.Notsent_bytes),
	}, nil
}

// withoutFIN removes the byte that the kernel counts for a received FIN, if the gate's
// counts show it. A hostile gate gains one byte by this.
func (t traffic) withoutFIN(said traffic) traffic {
	if t.received == said.received+1 {
		t.received--
	}
	if t.sent == said.sent+1 {
		t.sent-- // on a published port the two directions are exchanged
	}
	return t
}

// duplicate returns another descriptor of file's socket as a plain number. An os.File would
// add it to Go's epoll set, and each segment of the agent's would wake the broker. Its
// number is at least 3, so that it never becomes a standard stream that is closed.
func duplicate(file syscall.Conn) (int, error) {
	fd := -1
	err := descriptor.Use(file, func(old int) (err error) { fd, err = unix.FcntlInt(uintptr(old), unix.F_DUPFD_CLOEXEC, 3); return err })
	if err != nil {
		return -1, fmt.Errorf("cannot duplicate socket: %w", err)
	}
	return fd, nil
}

// cut ends the connection of fd, even if other processes have the socket. SOCK_DESTROY resets a TCP
// connection and discards unsent data. It does not work without CONFIG_INET_DIAG_DESTROY,
// nor for a socket in the agent's namespace, which this process's sock_diag does not see.
// Then shutdown(2) must do. connect(AF_UNSPEC) would reset too, but the gate could connect
// the socket again.
func cut(fd int) error {
	destroyErr := destroy(fd)
	err := unix.Shutdown(fd, unix.SHUT_RDWR)
	if destroyErr == nil || err == nil || errors.Is(err, unix.ENOTCONN) {
		return nil // ENOTCONN: the peer has closed already
	}
	return fmt.Errorf("cannot cut connection: %w", errors.Join(err, destroyErr))
}

// limitBuffers sets small buffers, see wire.LargeBuffers. Errors do not matter: the
// connection works with the kernel's buffers too.
func limitBuffers(fd int) {
	_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, wire.SmallBufferBytes)
	_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUF, wire.SmallBufferBytes)
}

// closeSocket closes a socket that the gate had. An honest gate sets SO_LINGER to 0 (a
// reset) or not at all. A hostile one could set it again after the check here, so this may
// block.
func closeSocket(fd int) {
	linger, err := unix.GetsockoptLinger(fd, unix.SOL_SOCKET, unix.SO_LINGER)
	if err == nil && linger.Onoff != 0 && linger.Linger != 0 {
		_ = unix.SetsockoptLinger(fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{}) // cannot fail where it was read
	}
	unix.Close(fd)
}

// closeTimeout bounds the wait for closes at the end. One that blocks longer ends with the process.
const closeTimeout = time.Second

// awaitCloses waits for closes under way, within closeTimeout. The goroutine of a wait that
// timed out ends with the last close.
func (all *connections) awaitCloses() {
	done := make(chan struct{})
	go func() {
		defer close(done)
		all.closes.Wait()
	}()
	select {
	case <-done:
	case <-time.After(closeTimeout):
	}
}

// endDatagrams ends a datagram socket: shutdown(2) stops sending, and a filter that drops
// everything stops receiving. SO_LOCK_FILTER keeps the gate from removing the filter.
func endDatagrams(fd int) error {
	// It keeps 0 bytes of each datagram.
	dropAll := unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K}
	program := unix.SockFprog{Len: 1, Filter: &dropAll}
	err := errors.Join(
		unix.Shutdown(fd, unix.SHUT_RDWR),
		unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &program),
		unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_LOCK_FILTER, 1))
	if err != nil {
		return fmt.Errorf("cannot end flow: %w", err)
	}
	return nil
}

// destroy is SOCK_DESTROY, sock_diag(7). The cookie identifies exactly this socket, also
// after its addresses are reused.
func destroy(fd int) error {
	local, err := socketAddress(unix.Getsockname(fd))
	if err != nil {
		return err
	}
	remote, err := socketAddress(unix.Getpeername(fd))
	if err != nil {
		return err
	}
	cookie, err := unix.GetsockoptUint64(fd, unix.SOL_SOCKET, unix.SO_COOKIE)
	if err != nil {
		return fmt.Errorf("cannot read SO_COOKIE: %w", err)
	}
	// The request has NLM_F_ACK, so the kernel always answers, with errno 0 for success.
	diag, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_SOCK_DIAG)
	if err != nil {
		return fmt.Errorf("cannot open sock_diag: %w", err)
	}
	defer unix.Close(diag)
	if err := unix.Sendto(diag, destroyRequest(local, remote, cookie), 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return fmt.Errorf("cannot ask sock_diag: %w", err)
	}
	answer := make([]byte, 4096)
	n, _, err := unix.Recvfrom(diag, answer, 0)
	if err != nil || n < unix.SizeofNlMsghdr+4 {
		return fmt.Errorf("cannot read sock_diag's answer of %d bytes: %w", n, err)
	}
	if errno := -int32(binary.NativeEndian.Uint32(answer[unix.SizeofNlMsghdr:])); errno != 0 {
		return fmt.Errorf("cannot destroy socket: %w", syscall.Errno(errno))
	}
	return nil
}

// destroyRequest encodes struct nlmsghdr and struct inet_diag_req_v2 (linux/inet_diag.h);
// ports and addresses are in network byte order.
func destroyRequest(local, remote netip.AddrPort, cookie uint64) []byte {
	// 56 is the size of struct inet_diag_req_v2.
	const size = unix.SizeofNlMsghdr + 56
	const anyState = ^uint32(0)
	family := byte(unix.AF_INET)
	if local.Addr().Is6() {
		family = unix.AF_INET6
	}
	native := binary.NativeEndian
	m := make([]byte, 0, size)
	m = native.AppendUint32(m, size)
	m = native.AppendUint16(m, unix.SOCK_DESTROY)
	m = native.AppendUint16(m, unix.NLM_F_REQUEST|unix.NLM_F_ACK)
	m = append(m, make([]byte, 8)...) // sequence, port id
	// Family, protocol, no extensions, padding.
	m = append(m, family, unix.IPPROTO_TCP, 0, 0)
	m = native.AppendUint32(m, anyState)
	m = binary.BigEndian.AppendUint16(m, local.Port())
	m = binary.BigEndian.AppendUint16(m, remote.Port())
	m = append(m, sixteen(local.Addr())...)
	m = append(m, sixteen(remote.Addr())...)
	m = native.AppendUint32(m, 0) // any interface
	m = native.AppendUint32(m, uint32(cookie))
	return native.AppendUint32(m, uint32(cookie>>32))
}

// sixteen is addr as __be32[4]; IPv4 is in the first word.
func sixteen(addr netip.Addr) []byte {
	out := make([]byte, 16)
	copy(out, addr.AsSlice())
	return out
}

// socketAddress converts the result of getsockname(2) or getpeername(2).
func socketAddress(sa unix.Sockaddr, err error) (netip.AddrPort, error) {
	switch sa := sa.(type) {
	case *unix.SockaddrInet4:
		return netip.AddrPortFrom(netip.AddrFrom4(sa.Addr), uint16(sa.Port)), nil
	case *unix.SockaddrInet6:
		return netip.AddrPortFrom(netip.AddrFrom16(sa.Addr), uint16(sa.Port)), nil
	}
	return netip.AddrPort{}, fmt.Errorf("cannot read socket's address: %w", errors.Join(err, unix.EAFNOSUPPORT))
}

// routed reports whether there is a route to addr. connect(2) on a datagram socket looks up
// the route and sends nothing.
func (o outside) routed(addr netip.Addr) bool {
	family, name := socketName(netip.AddrPortFrom(addr.Unmap(), 53))
	fd, err := o.socket(family, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC)
	if err == nil {
		err = unix.Connect(fd, name)
		unix.Close(fd)
	}
	return err == nil || !unreachable(err)
}

// unreachable distinguishes a missing route from a lack of descriptors or memory, which
// says nothing about the address.
func unreachable(err error) bool {
	for _, errno := range []error{unix.ENETUNREACH, unix.EHOSTUNREACH, unix.EADDRNOTAVAIL, unix.EAFNOSUPPORT, unix.EINVAL} {
		if errors.Is(err, errno) {
			return true
		}
	}
	return false
}

func closeFiles(files []*os.File) {
	for _, file := range files {
		file.Close()
	}
}
