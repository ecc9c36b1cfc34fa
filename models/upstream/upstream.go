// Package upstream is the HTTP client of clove-upstream: it sends calls to providers, adds
// the key, does TLS, and reads from the answer what was used. It parses what providers
// send, and nothing of an agent's: a request's body passes as bytes.
//
// It opens no connection: control makes each, to a configured provider only.
package upstream

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
	"sync"
	"time"

	"clove.run/clove/internal/packet"
	"clove.run/clove/models/link"
	"clove.run/clove/secrets/redact"
)

const (
	maxHead  = 64 << 10 // bytes of an answer's head
	maxIdle  = 16       // connections that are kept for each provider
	maxDials = 256
	tlsTime  = 30 * time.Second // for the handshake
	// maxBodies bounds the bodies that are held for each owner, in bytes: as many as an honest
	// clove-models has. All owners share this process.
	maxBodies = 256 << 20
)

// Server makes the calls that control orders.
type Server struct {
	control   *packet.Conn
	providers map[string]*provider
	bodies    *ownerLimits
	journal   *journal
	flying    sync.WaitGroup // calls

	mu    sync.Mutex // guards the following
	last  uint64
	dials map[uint64]chan dialled
	mores map[uint64]chan int64 // of calls that wait for more to be reserved
	calls map[uint64]context.CancelFunc
	alone bool // control is gone
}

type dialled struct {
	file *os.File
	err  error
}

// provider is one with its connections.
type provider struct {
	link.Provider
	client *http.Client
	secret *redact.Secret // its key
}

// ReadSetup reads the setup, while files may still be read.
func ReadSetup(r io.Reader) (link.Setup, error) {
	var setup link.Setup
	err := json.NewDecoder(r).Decode(&setup)
	return setup, err
}

// New makes a server of a setup. What control does not hear any more goes into file; nil:
// nowhere.
func New(control *packet.Conn, file *os.File, setup link.Setup) (*Server, error) {
	s := &Server{control: control, journal: newJournal(file), providers: map[string]*provider{}, bodies: newOwnerLimits(maxBodies), dials: map[uint64]chan dialled{}, mores: map[uint64]chan int64{}, calls: map[uint64]context.CancelFunc{}}
	everyones := authorities(setup.Roots)
	for name, p := range setup.Providers {
		roots := everyones
		if len(p.Roots) > 0 {
			roots = authorities(p.Roots)
		}
		s.providers[name] = &provider{Provider: p, secret: redact.New(p.Key), client: &http.Client{
			// No redirect is followed: it could carry the key to another place.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
			Transport: &http.Transport{
				Proxy:                  nil,
				DialContext:            func(ctx context.Context, _, _ string) (net.Conn, error) { return s.dial(ctx, name) },
				TLSClientConfig:        &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
				TLSHandshakeTimeout:    tlsTime,
				DisableCompression:     true, // a key is looked for in the answer as it is
				MaxResponseHeaderBytes: maxHead,
				MaxIdleConnsPerHost:    maxIdle,
			},
		}}
	}
	return s, nil
}

// authorities reads certificates. Without one, no provider is believed.
func authorities(text []byte) *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(text)
	return pool
}

// Serve serves until control is gone. Then it lets the calls in flight come to their end, and
// returns nil.
func (s *Server) Serve() error {
	if err := s.control.Send(link.FromUpstream{Ready: true}); err != nil {
		return err
	}
	for {
		var m link.ToUpstream
		files, err := s.control.Receive(&m)
		if errors.Is(err, io.EOF) {
			s.finish()
			return nil
		}
		if err != nil {
			return fmt.Errorf("cannot serve: %w", err)
		}
		switch {
		case m.Call != nil && (len(files) == 1 || len(files) == 2):
			s.flying.Go(func() { s.call(*m.Call, files[0], files[1:]...) })
			continue
		case m.Socket != nil:
			files = s.connected(*m.Socket, files)
		case m.Cancel != 0:
			s.cancel(m.Cancel)
		case m.More != nil:
			s.reserved(*m.More)
		}
		packet.CloseAll(files)
	}
}

// finish waits for the calls in flight. Nobody makes a connection for them any more.
func (s *Server) finish() {
	s.mu.Lock()
	s.alone = true
	for number, waiter := range s.dials {
		delete(s.dials, number)
		waiter <- dialled{err: errAlone}
	}
	for number, waiter := range s.mores {
		delete(s.mores, number)
		waiter <- 0
	}
	s.mu.Unlock()
	s.flying.Wait()
}

var errAlone = errors.New("nobody makes connections now")

// errDials is of this process, and says nothing of a provider.
var errDials = errors.New("too many connections are being made")

// dial has control connect to a provider.
func (s *Server) dial(ctx context.Context, name string) (net.Conn, error) {
	waiter := make(chan dialled, 1)
	s.mu.Lock()
	if s.alone || len(s.dials) >= maxDials {
		alone := s.alone
		s.mu.Unlock()
		if alone {
			return nil, unconnected{errAlone}
		}
		return nil, errDials
	}
	s.last++
	number := s.last
	s.dials[number] = waiter
	s.mu.Unlock()
	if err := s.control.Send(link.FromUpstream{Dial: &link.Dial{Number: number, Provider: name}}); err != nil {
		return nil, err
	}
	var d dialled
	select {
	case d = <-waiter:
	case <-ctx.Done():
		s.mu.Lock()
		_, waits := s.dials[number]
		delete(s.dials, number)
		s.mu.Unlock()
		if !waits {
			if d = <-waiter; d.file != nil {
				d.file.Close()
			}
		}
		return nil, ctx.Err()
	}
	if d.err != nil {
		return nil, unconnected{d.err}
	}
	defer d.file.Close()
	return net.FileConn(d.file)
}

// connected gives a connection to whoever waits for it, and returns what nobody took.
func (s *Server) connected(m link.Socket, files []*os.File) []*os.File {
	s.mu.Lock()
	waiter := s.dials[m.Number]
	delete(s.dials, m.Number)
	s.mu.Unlock()
	switch {
	case waiter == nil:
		return files
	case m.Error != "" || len(files) != 1:
		waiter <- dialled{err: errors.New(m.Error)}
		return files
	}
	waiter <- dialled{file: files[0]}
	return nil
}

// more has control reserve more output for a call, and returns how much is reserved then, in
// tokens; 0: control reserves no more, or is gone.
func (s *Server) more(call uint64) int64 {
	waiter := make(chan int64, 1)
	s.mu.Lock()
	if s.alone {
		s.mu.Unlock()
		return 0
	}
	s.mores[call] = waiter
	s.mu.Unlock()
	if s.control.Send(link.FromUpstream{More: call}) != nil {
		s.reserved(link.More{Call: call}) // finish may have answered
	}
	return <-waiter
}

// reserved answers a call that waits for more.
func (s *Server) reserved(m link.More) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if waiter := s.mores[m.Call]; waiter != nil {
		delete(s.mores, m.Call)
		waiter <- m.MostOut
	}
}

// enter notes a call that can be cancelled.
func (s *Server) enter(number uint64, cancel context.CancelFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls[number] = cancel
}

func (s *Server) leave(number uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.calls, number)
}

func (s *Server) cancel(number uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if cancel := s.calls[number]; cancel != nil {
		cancel()
	}
}
