package front

import (
	"net"
	"net/http"
	"os"
	"sync"

	"clove.run/clove/models/scripted"
)

// provide begins to answer as a provider, from a script. The process serves no agent then.
func (s *Server) provide(text string) error {
	script := scripted.Echo()
	if text != "" {
		var err error
		if script, err = scripted.ParseScript([]byte(text)); err != nil {
			return err
		}
	}
	s.clients = &clients{next: make(chan net.Conn), done: make(chan struct{})}
	s.serving = &http.Server{Handler: scripted.New(script)}
	go s.serving.Serve(s.clients) // ends with finish
	return nil
}

// clients is a listener whose connections come over the channel.
type clients struct {
	next chan net.Conn
	done chan struct{}
	once sync.Once
}

// add takes over a connection.
func (c *clients) add(file *os.File) {
	conn, err := net.FileConn(file)
	file.Close()
	if err != nil {
		return
	}
	select {
	case c.next <- conn:
	case <-c.done:
		conn.Close()
	}
}

func (c *clients) Accept() (net.Conn, error) {
	select {
	case conn := <-c.next:
		return conn, nil
	case <-c.done:
		return nil, net.ErrClosed
	}
}

func (c *clients) Close() error {
	c.once.Do(func() { close(c.done) })
	return nil
}

func (c *clients) Addr() net.Addr { return &net.UnixAddr{Net: "unix"} }
