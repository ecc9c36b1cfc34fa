package bounded

import (
	"net"
	"sync"
)

// Listener accepts no more connections than it has places; further ones wait in the kernel's
// queue.
type Listener struct {
	net.Listener
	places chan struct{}
	done   chan struct{}
	once   sync.Once
}

// NewListener bounds the connections of l that are open at once.
func NewListener(l net.Listener, most int) *Listener {
	return &Listener{Listener: l, places: make(chan struct{}, most), done: make(chan struct{})}
}

// Accept waits for a place, and then for a connection.
func (l *Listener) Accept() (net.Conn, error) {
	select {
	case l.places <- struct{}{}:
	case <-l.done:
		return nil, net.ErrClosed
	}
	conn, err := l.Listener.Accept()
	if err != nil {
		<-l.places
		return nil, err
	}
	return &placed{Conn: conn, free: sync.OnceFunc(func() { <-l.places })}, nil
}

// Close also ends an Accept that waits for a place.
func (l *Listener) Close() error {
	l.once.Do(func() { close(l.done) })
	return l.Listener.Close()
}

// placed gives its place back when it is closed.
type placed struct {
	net.Conn
	free func()
}

func (c *placed) Close() error {
	defer c.free()
	return c.Conn.Close()
}
