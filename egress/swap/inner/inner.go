package inner

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"sync"
	"time"

	"clove.run/clove/egress/swap/link"
	"clove.run/clove/internal/packet"
	"clove.run/clove/secrets"
	"clove.run/clove/secrets/redact"
)

const (
	tlsTime     = 20 * time.Second
	headTime    = 10 * time.Minute // until an answer begins; a model may think
	answerBytes = 64 << 10         // of an answer's head
	awaitedMost = 1024             // connections that the outer side names before clove does
)

// Server makes the requests of one run.
type Server struct {
	control, outer *packet.Conn
	roots          *x509.CertPool
	secrets        []*secret

	mu      sync.Mutex // guards the following
	values  link.Values
	keyless *redact.Secret // finds all values
	longest int            // no value is longer, in bytes
	conns   map[uint64]*serverConn
	awaited map[uint64]bool // connections that the outer side has asked about before clove's order
	uses    map[uint64]chan link.Verdict
	lastUse uint64
}

// secret is one with its rules ready.
type secret struct {
	link.Secret
	core  string // the placeholder without its prefix
	rules []secrets.Rule
}

// New makes a server with its channels to clove and to the outer side.
func New(control, outer *packet.Conn) *Server {
	return &Server{control: control, outer: outer, keyless: &redact.Secret{}, conns: map[uint64]*serverConn{}, awaited: map[uint64]bool{}, uses: map[uint64]chan link.Verdict{}}
}

// rootsBytes bounds the certificates of authorities.
const rootsBytes = 8 << 20

// Serve serves until clove closes its channel. roots has the system's authorities, PEM.
func (s *Server) Serve(first link.Inner, roots io.Reader) error {
	text, err := io.ReadAll(io.LimitReader(roots, rootsBytes))
	if err != nil {
		return err
	}
	s.roots = x509.NewCertPool()
	s.roots.AppendCertsFromPEM(text)
	for _, one := range first.Secrets {
		of := &secret{Secret: one, core: one.Placeholder[len(one.Terms.Prefix):]}
		for _, text := range one.Terms.Allow {
			rule, err := secrets.ParseRule(text)
			if err != nil {
				return err
			}
			of.rules = append(of.rules, rule)
		}
		s.secrets = append(s.secrets, of)
	}
	if err := s.control.Send(link.Report{Ready: &link.Ready{}}); err != nil {
		return err
	}
	go s.listen()
	for {
		var order link.Order
		files, err := s.control.Receive(&order)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = s.obey(order, files)
		}
		if err != nil {
			return err
		}
	}
}

// obey does what clove says. It owns the files.
func (s *Server) obey(order link.Order, files []*os.File) error {
	one := len(files) == 1
	switch {
	case order.Conn != nil && one:
		go s.meet(*order.Conn, files[0])
		return nil
	case order.Values && one:
		defer files[0].Close()
		return s.learn(files[0])
	case order.Verdict != nil && len(files) == 0:
		s.mu.Lock()
		defer s.mu.Unlock()
		if to := s.uses[order.Verdict.Number]; to != nil {
			delete(s.uses, order.Verdict.Number)
			to <- *order.Verdict // it has room for one
		}
		return nil
	}
	packet.CloseAll(files)
	return errors.New("an order that means nothing")
}

// learn takes new values. Those before are still looked for in answers.
func (s *Server) learn(from io.Reader) error {
	text, err := io.ReadAll(io.LimitReader(from, link.ValuesBytes))
	values := link.Values{}
	if err == nil {
		err = json.Unmarshal(text, &values)
	}
	clear(text)
	if err != nil {
		return errors.New("the values cannot be read") // the error would have a part of them
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, value := range values {
		s.keyless = s.keyless.With(value)
		s.longest = max(s.longest, len(value))
	}
	s.values = values
	return nil
}

// listen takes the outer side's messages until it is gone.
func (s *Server) listen() {
	defer s.control.Close()
	for {
		var m link.ToInner
		files, err := s.outer.Receive(&m)
		if err != nil {
			return
		}
		switch {
		case m.Request != nil && len(files) == 2:
			go s.serve(*m.Request, files[0], files[1])
			continue
		case m.Await != 0:
			s.await(m.Await)
		case m.Gone != 0:
			if c := s.leave(m.Gone); c != nil {
				c.close()
			}
		}
		packet.CloseAll(files)
	}
}

// serverConn is a connection to a server.
type serverConn struct {
	of    link.Conn
	met   chan struct{} // closed when the following are known
	http2 bool
	err   error
	http  *http.ClientConn
}

func (c *serverConn) host() string { return net.JoinHostPort(c.of.Name, fmt.Sprint(c.of.Port)) }

func (c *serverConn) close() {
	<-c.met
	if c.http != nil {
		c.http.Close()
	}
}

// meet begins TLS on a socket that clove has connected.
func (s *Server) meet(of link.Conn, file *os.File) {
	c := &serverConn{of: of, met: make(chan struct{})}
	s.mu.Lock()
	s.conns[of.Number] = c
	awaited := s.awaited[of.Number]
	delete(s.awaited, of.Number)
	s.mu.Unlock()
	conn, err := net.FileConn(file)
	file.Close()
	if err == nil {
		err = c.begin(conn, s.authorities(c.host()))
	}
	c.err = err
	close(c.met)
	if err != nil {
		_ = s.control.Send(link.Report{Denied: &link.Denied{Request: link.Request{Host: c.host()}, Reason: link.ReasonCert, Detail: err.Error()}})
	}
	if awaited {
		s.tell(c)
	}
}

// begin makes the TLS connection, and prepares it for requests.
func (c *serverConn) begin(conn net.Conn, roots *x509.CertPool) error {
	ctx, cancel := context.WithTimeout(context.Background(), tlsTime)
	defer cancel()
	secure := tls.Client(conn, &tls.Config{RootCAs: roots, ServerName: c.of.Name, MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}})
	if err := secure.HandshakeContext(ctx); err != nil {
		conn.Close()
		return err
	}
	c.http2 = secure.ConnectionState().NegotiatedProtocol == "h2"
	protocols := &http.Protocols{}
	protocols.SetHTTP1(!c.http2)
	protocols.SetHTTP2(c.http2)
	transport := &http.Transport{
		DialTLSContext:     func(context.Context, string, string) (net.Conn, error) { return secure, nil },
		DisableCompression: true, MaxResponseHeaderBytes: answerBytes, ResponseHeaderTimeout: headTime, Protocols: protocols,
	}
	var err error
	if c.http, err = transport.NewClientConn(ctx, "https", c.host()); err != nil {
		conn.Close()
	}
	return err
}

// authorities are those that a host's certificate must be of.
func (s *Server) authorities(host string) *x509.CertPool {
	for _, one := range s.secrets {
		if one.Terms.CA != "" && slices.Contains(one.Terms.Hosts, host) {
			roots := x509.NewCertPool()
			roots.AppendCertsFromPEM([]byte(one.Terms.CA))
			return roots
		}
	}
	return s.roots
}

// await has the outer side told how a server was met.
func (s *Server) await(number uint64) {
	s.mu.Lock()
	c := s.conns[number]
	if c == nil && len(s.awaited) < awaitedMost {
		s.awaited[number] = true
	}
	s.mu.Unlock()
	if c != nil {
		go s.tell(c)
	}
}

// tell says how a server was met, and later that it has ended its connection.
func (s *Server) tell(c *serverConn) {
	<-c.met
	m := link.Met{Number: c.of.Number, HTTP2: c.http2}
	if c.err != nil {
		m.Error = "the server does not prove that it is " + c.of.Name + ": " + c.err.Error()
	}
	_ = s.outer.Send(link.ToOuter{Met: &m})
	if c.err != nil {
		return
	}
	c.http.SetStateHook(func(h *http.ClientConn) {
		if h.Err() != nil {
			_ = s.outer.Send(link.ToOuter{Gone: c.of.Number})
		}
	})
}

// conn is a connection that was met.
func (s *Server) conn(number uint64) *serverConn {
	s.mu.Lock()
	c := s.conns[number]
	s.mu.Unlock()
	if c == nil {
		return nil
	}
	<-c.met
	if c.err != nil {
		return nil
	}
	return c
}

// leave forgets a connection.
func (s *Server) leave(number uint64) *serverConn {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.conns[number]
	delete(s.conns, number)
	delete(s.awaited, number)
	return c
}
