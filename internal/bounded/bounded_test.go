package bounded

import (
	"errors"
	"net"
	"testing"
	"time"
)

func TestBytes(t *testing.T) {
	t.Parallel()
	b := NewBytes(10)
	if !b.Take(4) || !b.Take(6) || b.Take(1) {
		t.Error("not what was free")
	}
	if b.Give(4); b.Take(5) || !b.Take(4) {
		t.Error("not what was given back")
	}
}

// A connection that is one too many waits until another is closed, twice or not.
func TestListener(t *testing.T) {
	t.Parallel()
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := NewListener(inner, 1)
	accepted := make(chan net.Conn, 3)
	ended := make(chan error, 1)
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				ended <- err
				return
			}
			accepted <- conn
		}
	}()
	for range 3 {
		conn, err := net.Dial("tcp", inner.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
	}
	first := <-accepted
	select {
	case <-accepted:
		t.Error("two are open")
	case <-time.After(50 * time.Millisecond): // control: the third is accepted at once, below
	}
	first.Close()
	first.Close()
	second := <-accepted
	select {
	case <-accepted:
		t.Error("a second Close has given another place")
	case <-time.After(50 * time.Millisecond):
	}
	l.Close() // while it waits for a place
	if err := <-ended; !errors.Is(err, net.ErrClosed) {
		t.Error(err)
	}
	second.Close()
}
