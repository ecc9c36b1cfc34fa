package gate

import (
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"unsafe"

	"golang.org/x/sys/unix"
)

// datagram says where a datagram came from and where it was sent.
type datagram struct {
	from  netip.AddrPort // the agent's socket, in the form of the socket's family
	to    netip.AddrPort // unmapped
	bytes int
}

// receiveAll calls handle for each datagram whose destination is known, until conn is
// closed or the gate ends. handle must not keep buffer.
func (s *server) receiveAll(conn *net.UDPConn, buffer []byte, handle func(datagram)) {
	for {
		d, err := receiveDatagram(conn, buffer)
		switch {
		case errors.Is(err, net.ErrClosed), err != nil && !s.pause(acceptBackoff):
			return
		case err == nil && d.to.IsValid():
			handle(d)
		}
	}
}

// receiveDatagram reads a datagram and its original destination.
func receiveDatagram(conn *net.UDPConn, buffer []byte) (datagram, error) {
	// Space for one address of either family with its header, and some more.
	var oob [128]byte
	n, oobn, _, from, err := conn.ReadMsgUDPAddrPort(buffer, oob[:])
	if err != nil {
		return datagram{}, err
	}
	return datagram{from: from, to: destination(oob[:oobn]), bytes: n}, nil
}

// destination finds the address in the control data; invalid if there is none.
func destination(oob []byte) netip.AddrPort {
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return netip.AddrPort{}
	}
	for _, m := range messages {
		switch {
		case m.Header.Level == unix.SOL_IP && m.Header.Type == unix.IP_ORIGDSTADDR && len(m.Data) >= unix.SizeofSockaddrInet4:
			return addressAt(m.Data, 4, 4) // struct sockaddr_in, ip(7)
		case m.Header.Level == unix.SOL_IPV6 && m.Header.Type == unix.IPV6_ORIGDSTADDR && len(m.Data) >= unix.SizeofSockaddrInet6:
			return addressAt(m.Data, 8, 16) // struct sockaddr_in6, ipv6(7)
		}
	}
	return netip.AddrPort{}
}

func addressAt(sockaddr []byte, offset, length int) netip.AddrPort {
	address, _ := netip.AddrFromSlice(sockaddr[offset : offset+length])
	return unmap(netip.AddrPortFrom(address, binary.BigEndian.Uint16(sockaddr[2:])))
}

// sendDatagram answers d from the address that it was sent to: a client ignores an answer
// from another one.
func sendDatagram(conn *net.UDPConn, message []byte, d datagram) error {
	_, _, err := conn.WriteMsgUDPAddrPort(message, source(d.to.Addr()), d.from)
	return err
}

// source is the control message that sets the source address: IP_PKTINFO, or IPV6_PKTINFO
// (ip(7), RFC 3542 section 6.2).
func source(address netip.Addr) []byte {
	if address.Is4() {
		info := unix.Inet4Pktinfo{Spec_dst: address.As4()}
		return packetInfo(unix.SOL_IP, unix.IP_PKTINFO, unsafe.Slice((*byte)(unsafe.Pointer(&info)), unix.SizeofInet4Pktinfo))
	}
	info := unix.Inet6Pktinfo{Addr: address.As16()}
	return packetInfo(unix.SOL_IPV6, unix.IPV6_PKTINFO, unsafe.Slice((*byte)(unsafe.Pointer(&info)), unix.SizeofInet6Pktinfo))
}

// packetInfo is one control message; CmsgLen(0) is the offset of its data.
func packetInfo(level, kind int32, data []byte) []byte {
	message := make([]byte, unix.CmsgSpace(len(data)))
	header := (*unix.Cmsghdr)(unsafe.Pointer(&message[0]))
	header.Level, header.Type = level, kind
	header.SetLen(unix.CmsgLen(len(data)))
	copy(message[unix.CmsgLen(0):], data)
	return message
}
