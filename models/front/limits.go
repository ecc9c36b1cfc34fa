package front

import (
	"net"
	"sync"
)

// byteLimit is a number of bytes that are free. Who asks for more than is left waits for none:
// the request is refused.
type byteLimit struct {
	mu   sync.Mutex // guards free
	free int64
}

func newByteLimit(bytes int64) *byteLimit { return &byteLimit{free: bytes} }

func (r *byteLimit) take(n int64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if n > r.free {
		return false
	}
	r.free -= n
	return true
}

func (r *byteLimit) give(n int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.free += n
}

// limited accepts no more connections than it has places; further ones wait in the kernel's
// queue.
type limited struct {
	net.Listener
	places chan struct{}
	done   chan struct{}
	once   sync.Once
}

func newLimited(l net.Listener, most int) *limited {
	return &limited{Listener: l, places: make(chan struct{}, most), done: make(chan struct{})}
}

func (l *limited) Accept() (net.Conn, error) {
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

func (l *limited) Close() error {
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
