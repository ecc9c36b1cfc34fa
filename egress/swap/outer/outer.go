package outer

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"slices"
	"sync"
	"time"

	"clove.run/clove/egress/swap/link"
	"clove.run/clove/internal/packet"
)

const (
	headBytes = 48 << 10 // of a request; its JSON fits into a packet
	headTime  = time.Minute
	idleTime  = 10 * time.Minute // of a connection without a request; servers have less
	meetTime  = 45 * time.Second // until the inner side has met the server
)

// Server serves one run's agent.
type Server struct {
	control, inner *packet.Conn
	authority      *authority
	http           *http.Server
	accepted       *queue
	places         chan struct{} // one for each request under way
	signer         *signer

	mu    sync.Mutex // guards conns
	conns map[uint64]*agentConn
}

// New makes a server with its channels to clove and to the inner side.
func New(control, inner *packet.Conn) *Server {
	s := &Server{control: control, inner: inner, conns: map[uint64]*agentConn{}, accepted: &queue{conns: make(chan net.Conn), over: make(chan struct{})}, places: make(chan struct{}, link.RequestsMost)}
	s.signer = &signer{Server: s, known: make(chan struct{}), waiting: map[uint64]chan []byte{}}
	s.http = &http.Server{
		Handler: s, MaxHeaderBytes: headBytes, ReadHeaderTimeout: headTime, IdleTimeout: idleTime, ErrorLog: log.New(io.Discard, "", 0),
		ConnState: s.changed,
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, connKey{}, c.(*tls.Conn).NetConn())
		},
	}
	return s
}

// Serve serves until clove closes its channel. It takes over the files, which are the listener of the ssh agent, if there is one.
func (s *Server) Serve(first link.Outer, files ...*os.File) (err error) {
	var ready link.Ready
	if len(first.Names) > 0 {
		if s.authority, err = newAuthority(first.Names); err != nil {
			return err
		}
		ready.CA = s.authority.pem()
	}
	if first.SSH != nil && len(files) == 1 {
		if err := s.signer.accept(files[0], *first.SSH); err != nil {
			return err
		}
	}
	if err := s.control.Send(link.Report{Ready: &ready}); err != nil {
		return err
	}
	go func() { _ = s.http.Serve(s.accepted) }()
	defer s.http.Close()
	go s.listen()
	for {
		var order link.Order
		files, err := s.control.Receive(&order)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case order.Conn == nil || len(files) != 1:
			packet.CloseAll(files)
			return errors.New("an order without a connection")
		}
		go s.take(*order.Conn, files[0])
	}
}

// listen takes the inner side's messages until it is gone, without which nothing is served.
func (s *Server) listen() {
	defer s.control.Close()
	for {
		var m link.ToOuter
		files, err := s.inner.Receive(&m)
		packet.CloseAll(files)
		if err != nil {
			return
		}
		switch {
		case m.Keys != nil:
			s.signer.learn(m.Keys)
		case m.Signed != nil:
			s.signer.signed(*m.Signed)
		case m.Met != nil:
			if c := s.conn(m.Met.Number); c != nil {
				c.hear(*m.Met)
			}
		case m.Gone != 0:
			if c := s.conn(m.Gone); c != nil {
				c.serverGone()
			}
		}
	}
}

func (s *Server) conn(number uint64) *agentConn {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.conns[number]
}

// take serves a connection of the agent.
func (s *Server) take(of link.Conn, file *os.File) {
	conn, err := net.FileConn(file)
	file.Close()
	if err != nil {
		return
	}
	c := &agentConn{Conn: conn, of: of, met: make(chan link.Met, 1)}
	c.closed = func() {
		s.mu.Lock()
		delete(s.conns, of.Number)
		s.mu.Unlock()
		_ = s.inner.Send(link.ToInner{Gone: of.Number})
	}
	s.mu.Lock()
	s.conns[of.Number] = c
	s.mu.Unlock()
	secure, err := s.secure(c)
	if err != nil || !s.accepted.put(secure) {
		c.Close()
	}
}

// handshake is the configuration for a client. A name other than the connection's has no certificate.
func (s *Server) handshake(hello *tls.ClientHelloInfo) (*tls.Config, error) {
	c := hello.Conn.(*agentConn)
	if hello.ServerName != c.of.Name {
		_ = s.control.Send(link.Report{Denied: &link.Denied{Request: link.Request{Host: c.host()}, Reason: link.ReasonName, Detail: fmt.Sprintf("TLS shows the name %.80q", hello.ServerName)}})
		return nil, fmt.Errorf("the connection is for %s", c.of.Name)
	}
	certificate, err := s.authority.certify(c.of.Name)
	if err != nil {
		return nil, err
	}
	// Both sides speak the same version where they can: a change of protocol, as to WebSocket, is one of HTTP/1.1 alone.
	await := link.Await{Number: c.of.Number, HTTP2: slices.Contains(hello.SupportedProtos, "h2")}
	if err := s.inner.Send(link.ToInner{Await: &await}); err != nil {
		return nil, err
	}
	protocols := []string{"http/1.1"}
	if c.awaitMet().HTTP2 {
		protocols = []string{"h2", "http/1.1"}
	}
	c.show(time.Now())
	return &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{*certificate}, NextProtos: protocols}, nil
}

// connKey is of the agentConn in a request's context.
type connKey struct{}

// agentConn is a connection of the agent.
type agentConn struct {
	net.Conn
	of     link.Conn
	met    chan link.Met // has one value at most
	once   sync.Once
	closed func()

	mu     sync.Mutex // guards the following
	active int        // requests under way
	shown  time.Time  // when the client was shown the certificate, until it has sent something
	gone   bool       // the server has ended its connection
}

// host is the host that the connection is for.
func (c *agentConn) host() string { return net.JoinHostPort(c.of.Name, fmt.Sprint(c.of.Port)) }

// hear takes how the server was met.
func (c *agentConn) hear(m link.Met) {
	select {
	case c.met <- m:
	default: // the first counts
	}
}

// awaitMet waits until the inner side has met the server.
func (c *agentConn) awaitMet() link.Met {
	timer := time.NewTimer(meetTime)
	defer timer.Stop()
	select {
	case m := <-c.met:
		c.met <- m // for the requests; only hear sends beside this, and drops what does not fit
		return m
	case <-timer.C:
		return link.Met{Number: c.of.Number, Error: "the server does not answer"}
	}
}

// flushTime is for the end of an answer to leave, before its connection is ended as the server's was.
const flushTime = 50 * time.Millisecond

// serverGone ends a connection whose server has ended it, behind the answers under way.
func (c *agentConn) serverGone() { c.change(0, true) }

// change counts a request that begins or ends, and has the connection end when it is of no use any more.
func (c *agentConn) change(by int, gone bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.active += by
	c.gone = c.gone || gone
	if !c.gone || c.active > 0 {
		return
	}
	time.AfterFunc(flushTime, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.active == 0 {
			_ = c.Conn.SetReadDeadline(time.Now())
		}
	})
}

// Close is called by net/http, also behind a change of protocol.
func (c *agentConn) Close() error {
	c.once.Do(c.closed)
	return c.Conn.Close()
}

// queue is a listener of connections that clove passes.
type queue struct {
	conns chan net.Conn
	once  sync.Once
	over  chan struct{}
}

func (q *queue) put(c net.Conn) bool {
	select {
	case q.conns <- c:
		return true
	case <-q.over:
		return false
	}
}

// Accept is as net.Listener's.
func (q *queue) Accept() (net.Conn, error) {
	select {
	case c := <-q.conns:
		return c, nil
	case <-q.over:
		return nil, net.ErrClosed
	}
}

// Close is as net.Listener's.
func (q *queue) Close() error {
	q.once.Do(func() { close(q.over) })
	return nil
}

// Addr is as net.Listener's.
func (q *queue) Addr() net.Addr { return &net.UnixAddr{Name: "swap", Net: "unix"} }
