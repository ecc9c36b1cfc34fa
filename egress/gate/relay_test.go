package gate

import (
	"errors"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"clove.run/clove/egress/wire"
	"clove.run/clove/internal/descriptor"
	"clove.run/clove/internal/passfd"
)

// TestBothDirectionsEndByThemselves: a half-close of either side is passed on and leaves the
// other direction open.
func TestBothDirectionsEndByThemselves(t *testing.T) {
	t.Parallel()
	for _, agentFirst := range []bool{true, false} {
		file, far := outside(t)
		s, b := begin(t, wire.Limits{}, allowing(file))
		near := dial(t, to(t, s, "192.0.2.1:22"))
		_, err := io.WriteString(near, "from inside")
		check(t, err)
		expectText(t, far, "from inside")
		first, second := near, far
		if !agentFirst {
			first, second = far, near
		}
		check(t, first.CloseWrite())
		if n, err := second.Read(make([]byte, 1)); n != 0 || err != io.EOF {
			t.Errorf("after the half-close: %d, %v", n, err)
		}
		_, err = io.WriteString(second, "still there")
		check(t, err)
		check(t, second.CloseWrite())
		if text, err := io.ReadAll(first); err != nil || string(text) != "still there" {
			t.Errorf("%q, %v", text, err)
		}
		want := wire.Closed{Number: 7, RxBytes: 11, TxBytes: 11}
		if !agentFirst {
			want = wire.Closed{Number: 7, TxBytes: 22}
		}
		if got := get(t, b.closed); got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
}

// TestAResetIsPassedOn: in both directions.
func TestAResetIsPassedOn(t *testing.T) {
	t.Parallel()
	for _, agentResets := range []bool{true, false} {
		file, far := outside(t)
		s, b := begin(t, wire.Limits{}, allowing(file))
		near := dial(t, to(t, s, "192.0.2.1:22"))
		_, err := io.WriteString(near, "x")
		check(t, err)
		expectText(t, far, "x")
		from, at := near, far
		if !agentResets {
			from, at = far, near
		}
		check(t, from.SetLinger(0))
		check(t, from.Close())
		if _, err := at.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("%v, want a reset", err)
		}
		get(t, b.closed)
	}
}

// TestMegabytesArriveWhole: in both directions at once, through slow readers.
func TestMegabytesArriveWhole(t *testing.T) {
	t.Parallel()
	const size = 8 << 20
	file, far := outside(t)
	s, b := begin(t, wire.Limits{}, allowing(file))
	near := dial(t, to(t, s, "192.0.2.1:22"))
	data := make([]byte, size)
	for i := range data {
		data[i] = byte(i * i >> 8)
	}
	sent := make(chan error, 2)
	for _, end := range []interface {
		io.Writer
		CloseWrite() error
	}{near, far} {
		go func() {
			_, err := end.Write(data)
			sent <- errors.Join(err, end.CloseWrite())
		}()
	}
	for _, end := range []io.Reader{near, far} {
		got, err := io.ReadAll(end)
		if err != nil || string(got) != string(data) {
			t.Errorf("%d bytes, %v", len(got), err)
		}
	}
	check(t, errors.Join(get(t, sent), get(t, sent)))
	if got := get(t, b.closed); got.RxBytes != size || got.TxBytes != size {
		t.Errorf("%+v", got)
	}
}

// TestTheBudgetIsExact: not one byte more than allowed passes, and later connections are
// refused. The tests above, without a budget, are the control.
func TestTheBudgetIsExact(t *testing.T) {
	t.Parallel()
	const budget = 100_000
	file, far := outside(t)
	s, b := begin(t, wire.Limits{Bytes: budget}, allowing(file))
	address := to(t, s, "192.0.2.1:22")
	near := dial(t, address)
	go func() { _, _ = near.Write(make([]byte, 10*budget)) }() // it is cut
	n, err := io.Copy(io.Discard, far)
	if n > budget || !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("%d bytes passed, then %v", n, err)
	}
	if got := get(t, b.closed); got.TxBytes != budget {
		t.Errorf("%+v", got)
	}
	if got := get(t, b.refused); got.Reason != wire.ReasonBytes {
		t.Errorf("%+v", got)
	}
	expectReset(t, address, "")
}

// TestAnUrgentByteDoesNotStop: splice(2) stops before it.
func TestAnUrgentByteDoesNotStop(t *testing.T) {
	t.Parallel()
	file, far := outside(t)
	s, _ := begin(t, wire.Limits{}, allowing(file))
	near := dial(t, to(t, s, "192.0.2.1:22"))
	_, err := io.WriteString(near, "before")
	check(t, err)
	check(t, descriptor.Use(near, func(fd int) error { return syscall.Sendto(fd, []byte("!"), syscall.MSG_OOB, nil) }))
	expectText(t, far, "before")
	_, err = io.WriteString(near, "after")
	check(t, err)
	expectText(t, far, "after")
}

func TestAnAnswerWithoutItsSocketIsNoConnection(t *testing.T) {
	t.Parallel()
	s, b := begin(t, wire.Limits{}, func(wire.Request) wire.Answer {
		return wire.Answer{Result: wire.ResultAllowed, Number: 9}
	})
	expectReset(t, to(t, s, "192.0.2.1:22"), "")
	if got := get(t, b.closed); got.Number != 9 {
		t.Errorf("%+v", got)
	}
}

// What another process of clove's stands for is relayed too: bytes both ways, half-closes, and their count.
func TestARelayToAnotherProcess(t *testing.T) {
	t.Parallel()
	near, far, err := passfd.Pair(unix.SOCK_STREAM)
	check(t, err)
	conn, err := net.FileConn(far)
	check(t, err)
	far.Close()
	defer conn.Close()
	s, b := begin(t, wire.Limits{}, allowing(near))
	agent := dial(t, to(t, s, "192.0.2.1:22"))
	sent := strings.Repeat("from inside ", 1<<16)
	go func() {
		_, _ = io.WriteString(agent, sent)
		_ = agent.CloseWrite()
	}()
	if text, err := io.ReadAll(conn); err != nil || string(text) != sent {
		t.Errorf("%d bytes, %v", len(text), err)
	}
	_, err = io.WriteString(conn, "answer")
	check(t, err)
	check(t, conn.(*net.UnixConn).CloseWrite())
	if text, err := io.ReadAll(agent); err != nil || string(text) != "answer" {
		t.Errorf("%q, %v", text, err)
	}
	if got, want := get(t, b.closed), (wire.Closed{Number: 7, RxBytes: 6, TxBytes: int64(len(sent))}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}
