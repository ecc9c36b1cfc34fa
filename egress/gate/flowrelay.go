package gate

import (
	"errors"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"clove.run/clove/egress/wire"
	"golang.org/x/sys/unix"
)

const (
	datagramBytes = 64 << 10 // the longest UDP payload is 65507
	// UDP has no end of a flow. These times are near the defaults of connection tracking.
	flowUnanswered = 30 * time.Second
	flowIdle       = 60 * time.Second
)

// datagramBuffers are shared by all flows: one is held only while a datagram passes.
var datagramBuffers = sync.Pool{New: func() any { return new([datagramBytes]byte) }}

// relayFlow relays datagrams both ways until the flow is idle.
func (a *flows) relay(f *flow, outside, inside *net.UDPConn) {
	f.began = time.Now()
	for _, data := range f.endWait(outside) {
		_ = a.pass(f, outside, data, &f.traffic.tx) // the loops below meet the same error
	}
	var back sync.WaitGroup
	end := func() { outside.Close(); inside.Close() } // the close ends the other direction too
	back.Go(func() {
		defer end()
		a.passAll(f, outside, inside, &f.traffic.rx, func() { f.answered.Store(true) })
	})
	a.passAll(f, inside, outside, &f.traffic.tx, func() {})
	end()
	back.Wait()
}

// passAll relays one direction until the flow is idle or fails. It reads by hand and not
// with conn.Read, so that an idle flow holds no buffer of 64 KiB.
func (a *flows) passAll(f *flow, from, to *net.UDPConn, moved *atomic.Int64, passed func()) {
	raw, err := from.SyscallConn()
	if err != nil {
		return
	}
	step := func(fd uintptr) bool {
		// The buffer is held only while there is a datagram.
		buffer := datagramBuffers.Get().(*[datagramBytes]byte)
		defer datagramBuffers.Put(buffer)
		var n int
		n, _, err = unix.Recvfrom(int(fd), buffer[:], unix.MSG_DONTWAIT)
		if err == unix.EAGAIN || err == unix.EINTR {
			return false
		}
		if err == nil {
			passed()
			err = a.pass(f, to, buffer[:n], moved)
		}
		return true
	}
	for wake := true; ; {
		if wake && from.SetReadDeadline(f.expiry()) != nil {
			return
		}
		if waited := raw.Read(step); waited != nil {
			err = waited
		}
		// The deadline is extended when it passes, not for each datagram.
		if wake = errors.Is(err, os.ErrDeadlineExceeded); wake && time.Now().Before(f.expiry()) {
			continue
		}
		if err != nil && !passing(err) {
			return
		}
	}
}

// expiry is when the flow becomes idle if no datagram passes until then.
func (f *flow) expiry() time.Time {
	idle := flowUnanswered
	if f.answered.Load() {
		idle = flowIdle
	}
	return f.began.Add(time.Duration(f.last.Load()) + idle)
}

// pass sends one datagram and counts it.
func (a *flows) pass(f *flow, to *net.UDPConn, data []byte, moved *atomic.Int64) error {
	size := int64(len(data))
	if got := a.limits.bytes.take(size); got < size {
		// A datagram is sent whole or not at all.
		a.limits.bytes.give(got)
		a.refusals.udp(f.target, wire.ReasonBytes)
		return errBytes
	}
	if _, err := to.Write(data); err != nil {
		a.limits.bytes.give(size)
		return err
	}
	moved.Add(size)
	f.last.Store(int64(time.Since(f.began)))
	return nil
}

// passing reports whether the flow may continue after err: an ICMP error about an earlier
// datagram (udp(7)), or a datagram that is too long.
func passing(err error) bool {
	for _, errno := range []unix.Errno{unix.ECONNREFUSED, unix.EHOSTUNREACH, unix.ENETUNREACH, unix.EHOSTDOWN,
		unix.EPROTO, unix.EACCES, unix.EMSGSIZE, unix.ENOBUFS, unix.EPERM} {
		if errors.Is(err, errno) {
			return true
		}
	}
	return false
}
