package rpc

import (
	"context"
	"net"
	"path/filepath"
	"testing"
	"time"
)

// The end of the other side is noticed behind unread data. If it only closes its sending
// direction, that is not its end.
func TestWhenGone(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "s")
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	caller, err := Dial(context.Background(), path)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	served := New(conn)
	defer served.Close()
	gone, stopped := make(chan struct{}), make(chan struct{})
	served.WhenGone(func() { close(gone) })
	served.WhenGone(func() { close(stopped) })()
	for range 3 {
		if err := caller.Notify("unread", nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := caller.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if m, err := served.Receive(); err != nil || m.Method != "unread" { // the events of both have arrived
		t.Fatalf("%+v, %v", m, err)
	}
	select {
	case <-gone:
		t.Fatal("it still listens")
	default:
	}
	caller.Close()
	select {
	case <-gone:
	case <-time.After(time.Minute):
		t.Fatal("the end of the connection was not noticed")
	}
	select {
	case <-stopped:
		t.Error("a watch that was stopped goes on")
	default:
	}
}
