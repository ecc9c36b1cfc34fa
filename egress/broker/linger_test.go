package broker

import (
	"net"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/egress/wire"
)

// stuck is a connection whose bytes no process reads, with SO_LINGER as an attacker in the gate
// could set it, and without the gate's own descriptor.
func stuck(t *testing.T, f *fixture) wire.Answer {
	t.Helper()
	servers := f.leadsTo("93.184.216.34:22")
	answer, conn := f.gate.connected("93.184.216.34:22", "")
	<-servers
	conn.SetWriteDeadline(time.Now().Add(100 * time.Millisecond))
	for {
		if _, err := conn.Write(make([]byte, 1<<20)); err != nil {
			break // both buffers are full
		}
	}
	raw, err := conn.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	linger := func(fd uintptr) {
		err = unix.SetsockoptLinger(int(fd), unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1, Linger: 2 * int32(deadline/time.Second)})
	}
	if controlErr := raw.Control(linger); controlErr != nil || err != nil {
		t.Fatal(controlErr, err)
	}
	conn.Close()
	return answer
}

// TestALingeringSocketHoldsNobodyUp: close(2) would wait for the peer, which may work for the
// agent.
func TestALingeringSocketHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	f := serve(t, Config{Rules: rulesOf(t, "93.184.216.34:22")})
	answer := stuck(t, f)
	began := time.Now()
	f.gate.closed(answer.Number, 0, 0)
	if totals := f.broker.Totals(); totals.Connections != 1 {
		t.Errorf("%+v", totals)
	}
	f.stop()
	if err := f.result(); err != nil {
		t.Error(err)
	}
	if took := time.Since(began); took > deadline/4 {
		t.Errorf("it took %s", took)
	}
}

// TestAResetStaysAReset: the gate resets with a linger time of zero, and the broker's
// descriptor is closed last.
func TestAResetStaysAReset(t *testing.T) {
	t.Parallel()
	f := serve(t, Config{Rules: rulesOf(t, "93.184.216.34:22")})
	servers := f.leadsTo("93.184.216.34:22")
	answer, conn := f.gate.connected("93.184.216.34:22", "")
	peer := <-servers
	if err := conn.(*net.TCPConn).SetLinger(0); err != nil {
		t.Fatal(err)
	}
	conn.Close()
	f.gate.closed(answer.Number, 0, 0)
	reset(t, peer)
}
