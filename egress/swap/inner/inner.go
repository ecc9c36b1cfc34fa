package inner

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
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
	earlyMost   = 1024             // connections that the outer side names before clove does
)

// Server makes the requests of one run.
type Server struct {
	control, outer *packet.Conn
	roots          *x509.CertPool
	secrets        []*secret
	keys           []*sshKey
	places         chan struct{} // one for each request under way

	mu      sync.Mutex // guards the following
	values  link.Values
	keyless *redact.Secret // finds all values
	longest int            // no value is longer, in bytes
	conns   map[uint64]*serverConn
	early   map[uint64]early // what the outer side has said of connections before clove's order came
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
	return &Server{control: control, outer: outer, keyless: &redact.Secret{}, conns: map[uint64]*serverConn{}, early: map[uint64]early{}, places: make(chan struct{}, link.RequestsMost), uses: map[uint64]chan link.Verdict{}}
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
		if one.Terms.SSH != nil {
			s.keys = append(s.keys, &sshKey{Secret: one, hosts: one.Terms.SSH.Known()})
			continue
		}
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
		s.take(*order.Conn, files[0])
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
	public, err := s.keep(values)
	if err == nil && len(public) > 0 {
		err = s.outer.Send(link.ToOuter{Keys: public})
	}
	return err
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
			s.places <- struct{}{} // an honest outer side has as many
			go func() {
				defer func() { <-s.places }()
				s.serve(*m.Request, files[0], files[1])
			}()
			continue
		case m.Sign != nil:
			s.places <- struct{}{}
			go func() {
				defer func() { <-s.places }()
				s.sign(*m.Sign)
			}()
		case m.Await != nil:
			s.await(*m.Await)
		case m.Gone != 0:
			if c := s.leave(m.Gone); c != nil {
				c.close()
			}
		}
		packet.CloseAll(files)
	}
}

// early is what the outer side has said of a connection.
type early struct {
	await *link.Await
	gone  bool
}

// serverConn is a connection to a server.
type serverConn struct {
	of    link.Conn
	file  *os.File      // until it begins
	begun bool          // guarded by the server's mu while the connection is among conns
	met   chan struct{} // closed when the following are known
	http2 bool
	err   error
	http  *http.ClientConn
	// asked says that the server has asked for a certificate of its client, answered that it has served a request without one.
	asked, answered atomic.Bool
}

func (c *serverConn) host() string { return c.of.Name + ":" + strconv.Itoa(int(c.of.Port)) }

// close ends a connection that is not among conns any more.
func (c *serverConn) close() {
	if !c.begun {
		c.file.Close()
		return
	}
	<-c.met
	if c.http != nil {
		c.http.Close()
	}
}

// take keeps a socket that clove has connected until the outer side awaits its server.
func (s *Server) take(of link.Conn, file *os.File) {
	c := &serverConn{of: of, file: file, met: make(chan struct{})}
	s.mu.Lock()
	before := s.early[of.Number]
	delete(s.early, of.Number)
	if !before.gone {
		s.conns[of.Number] = c
	}
	s.mu.Unlock()
	switch {
	case before.gone:
		c.close()
	case before.await != nil:
		s.await(*before.await)
	}
}

// await has a server met, once.
func (s *Server) await(a link.Await) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.conns[a.Number]
	switch {
	case c == nil && len(s.early) < earlyMost:
		s.early[a.Number] = early{await: &a}
	case c != nil && !c.begun:
		c.begun = true
		go s.meet(c, a.HTTP2)
	}
}

// meet begins TLS, and says how it went.
func (s *Server) meet(c *serverConn, http2 bool) {
	conn, err := net.FileConn(c.file)
	c.file.Close()
	if err == nil {
		err = c.begin(conn, s.authorities(c.host()), http2)
	}
	c.err = err
	close(c.met)
	m := link.Met{Number: c.of.Number, HTTP2: c.http2}
	switch {
	case err != nil && c.wantsCertificate():
		m.Error = wantsCertificate
		s.report(link.Request{Host: c.host()}, link.Denied{Reason: link.ReasonClient, Detail: m.Error})
	case err != nil:
		m.Error = "the server does not prove that it is " + c.of.Name + ": " + err.Error()
		s.report(link.Request{Host: c.host()}, link.Denied{Reason: link.ReasonCert, Detail: err.Error()})
	}
	if s.outer.Send(link.ToOuter{Met: &m}) != nil || err != nil {
		return
	}
	c.http.SetStateHook(func(h *http.ClientConn) {
		if h.Err() != nil {
			if s.has(c) && c.wantsCertificate() {
				s.report(link.Request{Host: c.host()}, link.Denied{Reason: link.ReasonClient, Detail: wantsCertificate})
			}
			_ = s.outer.Send(link.ToOuter{Gone: c.of.Number})
		}
	})
}

// begin makes the TLS connection, and prepares it for requests.
func (c *serverConn) begin(conn net.Conn, roots *x509.CertPool, http2 bool) error {
	ctx, cancel := context.WithTimeout(context.Background(), tlsTime)
	defer cancel()
	versions := []string{"http/1.1"}
	if http2 {
		versions = []string{"h2", "http/1.1"}
	}
	secure := tls.Client(conn, &tls.Config{RootCAs: roots, ServerName: c.of.Name, MinVersion: tls.VersionTLS12, NextProtos: versions,
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			c.asked.Store(true)
			return &tls.Certificate{}, nil // none
		}})
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

// conn is a connection that was met.
func (s *Server) conn(number uint64) *serverConn {
	s.mu.Lock()
	c := s.conns[number]
	begun := c != nil && c.begun
	s.mu.Unlock()
	if !begun {
		return nil
	}
	if <-c.met; c.err != nil {
		return nil
	}
	return c
}

// has reports whether the agent has not ended a connection.
func (s *Server) has(c *serverConn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.conns[c.of.Number] == c
}

// leave forgets a connection. nil: clove has not named it yet.
func (s *Server) leave(number uint64) *serverConn {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.conns[number]
	delete(s.conns, number)
	if c == nil && len(s.early) < earlyMost {
		s.early[number] = early{gone: true}
	}
	return c
}
