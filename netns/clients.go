package netns

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// HasClient reports whether a process still has the socket from which the agent sends to target. A TCP client that has
// shut down only its own direction still has it, one that has closed or died has not; the bytes on the wire do not
// tell the two apart. proto is IPPROTO_TCP or IPPROTO_UDP.
func (n *Namespace) HasClient(proto int, client, target netip.AddrPort) (bool, error) {
	client, target = unmapped(client), unmapped(target)
	if client.Addr().Is4() != target.Addr().Is4() || !client.IsValid() || !target.IsValid() {
		return false, fmt.Errorf("cannot look for the socket from %s to %s: not of one IP version", client, target)
	}
	var diag int
	err := n.do(func() (err error) {
		diag, err = unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_SOCK_DIAG)
		return os.NewSyscallError("socket", err)
	})
	if err != nil {
		return false, err
	}
	defer unix.Close(diag)
	if err := unix.Sendto(diag, diagRequest(proto, client, target), 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return false, os.NewSyscallError("sendto", err)
	}
	answer := make([]byte, 4096)
	read, _, err := unix.Recvfrom(diag, answer, unix.MSG_DONTWAIT) // the kernel has answered within sendto(2)
	if err != nil {
		return false, os.NewSyscallError("recvfrom", err)
	}
	return readDiag(answer[:read])
}

// Sizes and offsets of linux/inet_diag.h.
const (
	diagRequestBytes = unix.SizeofNlMsghdr + 56 // struct inet_diag_req_v2
	diagState        = unix.SizeofNlMsghdr + 1  // struct inet_diag_msg
	diagInode        = unix.SizeofNlMsghdr + 68
	stateListen      = 10 // include/net/tcp_states.h
)

// diagRequest asks for one socket by its two ends; ports and addresses are in network byte order.
func diagRequest(proto int, client, target netip.AddrPort) []byte {
	family := byte(unix.AF_INET)
	if client.Addr().Is6() {
		family = unix.AF_INET6
	}
	source, destination := client, target
	if proto == unix.IPPROTO_UDP { // udp_dump_one swaps them, "for historical reasons"
		source, destination = target, client
	}
	native := binary.NativeEndian
	m := make([]byte, 0, diagRequestBytes)
	m = native.AppendUint32(m, diagRequestBytes)
	m = native.AppendUint16(m, unix.SOCK_DIAG_BY_FAMILY)
	m = native.AppendUint16(m, unix.NLM_F_REQUEST)
	m = append(m, make([]byte, 8)...) // sequence, port id
	m = append(m, family, byte(proto), 0, 0)
	m = native.AppendUint32(m, ^uint32(0)) // of any state
	m = binary.BigEndian.AppendUint16(m, source.Port())
	m = binary.BigEndian.AppendUint16(m, destination.Port())
	m = append(m, sixteen(source.Addr())...)
	m = append(m, sixteen(destination.Addr())...)
	m = native.AppendUint32(m, 0)    // on any interface
	return append(m, noCookie[:]...) // whatever its cookie is
}

// noCookie is INET_DIAG_NOCOOKIE, twice.
var noCookie = [8]byte{255, 255, 255, 255, 255, 255, 255, 255}

// sixteen is addr as __be32[4]; IPv4 is in the first word.
func sixteen(addr netip.Addr) []byte {
	out := make([]byte, 16)
	copy(out, addr.AsSlice())
	return out
}

// readDiag reads the answer. The kernel forgets the inode of a socket that no process has any more.
func readDiag(answer []byte) (bool, error) {
	if len(answer) < unix.SizeofNlMsghdr+4 {
		return false, fmt.Errorf("sock_diag answers with %d bytes", len(answer))
	}
	if binary.NativeEndian.Uint16(answer[4:]) == unix.NLMSG_ERROR {
		errno := syscall.Errno(-int32(binary.NativeEndian.Uint32(answer[unix.SizeofNlMsghdr:])))
		if errors.Is(errno, unix.ENOENT) {
			return false, nil
		}
		return false, os.NewSyscallError("sock_diag", errno)
	}
	if len(answer) < diagInode+4 {
		return false, fmt.Errorf("sock_diag answers with %d bytes", len(answer))
	}
	return answer[diagState] != stateListen && binary.NativeEndian.Uint32(answer[diagInode:]) != 0, nil
}
