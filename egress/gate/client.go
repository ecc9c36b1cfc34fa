package gate

import (
	"net"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/egress/wire"
)

// client waits for an answer that may take as long as people do.
type client struct {
	conn          *net.TCPConn // nil: it sends datagrams
	agent, target netip.AddrPort
}

// watch has the broker look whether the client is there, when it has ended what it sends and from time to time, until
// stop is called. The answer then comes as always. The connection can be read as before.
func (c *client) watch(b *broker, id uint64) (stop func()) {
	held := wire.Held{Of: id, Client: c.agent, Target: c.target, UDP: c.conn == nil}
	done, over, ended := make(chan struct{}), make(chan struct{}), make(chan struct{})
	if c.conn != nil {
		held.Client = plain(c.conn.RemoteAddr())
		go func() {
			if hasEnded(c.conn) {
				close(ended)
			}
			close(over)
		}()
	} else {
		close(over)
	}
	reported := make(chan struct{})
	go func() {
		defer close(reported)
		again := time.NewTicker(lookEvery)
		defer again.Stop()
		for ended := ended; ; {
			select {
			case <-done:
				return
			case <-ended:
				ended, held.Ended = nil, true
			case <-again.C:
			}
			// An error means that the channel is gone, and then the process ends.
			_ = b.conn.SendRequest(wire.Request{Held: &held})
		}
	}()
	return func() {
		close(done)
		<-reported
		if c.conn != nil {
			_ = c.conn.SetReadDeadline(time.Unix(1, 0)) // wakes hasEnded; of a closed connection it is awake
			<-over
			_ = c.conn.SetReadDeadline(time.Time{})
		}
	}
}

// States of a TCP connection, include/net/tcp_states.h.
const (
	tcpClose     = 7
	tcpCloseWait = 8
)

// hasEnded waits until the client has ended its direction or the connection, and reports that it has; false: the read deadline came first.
// It takes no byte.
func hasEnded(conn *net.TCPConn) bool {
	raw, err := conn.SyscallConn()
	if err != nil {
		return true
	}
	var failed error
	err = raw.Read(func(fd uintptr) bool {
		info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
		failed = err
		return err != nil || info.State == tcpClose || info.State == tcpCloseWait
	})
	return err == nil && failed == nil
}
