package mcp

import (
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"clove.run/clove/internal/bounded"
	"clove.run/clove/internal/packet"
	"clove.run/clove/tools/link"
)

// Bounds of each listener, but for maxBodies.
const (
	maxConnections = 128 // open at once
	maxRequests    = 64  // in flight
	maxSessions    = 32
	maxHeader      = 64 << 10
	// maxBody bounds a request: the largest arguments of a call with what is around them.
	maxBody = 128 << 10
	// maxBodies bounds the bytes of all requests that are held at once, for all listeners; maxOwnBodies
	// those of one.
	maxBodies    = 64 << 20
	maxOwnBodies = maxBodies / 4

	headerTime  = 10 * time.Second
	bodyTime    = time.Minute
	idleTime    = 5 * time.Minute  // of a connection
	sessionTime = 30 * time.Minute // that a session may be idle
)

// times are those that tests make shorter.
type times struct {
	write    time.Duration // of a part of an answer
	progress time.Duration // between notifications of a call's progress
	probe    time.Duration // between looks for a client that writes no more
	alive    time.Duration // between comments in a stream of events that has no others
	wait     time.Duration // of a call that waits for something, where the caller has named no other
}

// Server serves what control has it serve.
type Server struct {
	control *packet.Conn
	bodies  *bounded.Bytes
	times   times

	mu     sync.Mutex // guards the following
	served map[string]served
}

// served is one listener, or one client at two pipes.
type served interface {
	start()  // begins, when it has its name
	close()  // ends everything at once
	finish() // accepts nothing more, and returns when the calls in flight have ended
}

// New makes a server that serves what control says.
func New(control *packet.Conn) *Server {
	return &Server{control: control, bodies: bounded.NewBytes(maxBodies), served: map[string]served{},
		times: times{write: 30 * time.Second, probe: time.Second, progress: 5 * time.Second, alive: 15 * time.Second, wait: 45 * time.Second}}
}

// Serve serves until control is gone. Then it lets the calls in flight come to their end, and returns nil:
// connections that come later wait in the listeners for the next clove-mcp.
func (s *Server) Serve() error {
	if err := s.control.Send(link.FromDoor{Ready: true}); err != nil {
		return err
	}
	for {
		var m link.ToDoor
		files, err := s.control.Receive(&m)
		if errors.Is(err, io.EOF) {
			s.finish()
			return nil
		}
		if err != nil {
			return fmt.Errorf("cannot serve: %w", err)
		}
		s.receive(m, files)
	}
}

func (s *Server) receive(m link.ToDoor, files []*os.File) {
	switch {
	case m.Serve != nil && len(files) == 2:
		s.begin(*m.Serve, func(d *door) (served, error) { return s.listen(d, files[0]) }, files)
	case m.Stdio != nil && len(files) == 3:
		s.begin(*m.Stdio, func(d *door) (served, error) { return s.pipes(d, files[0], files[1]) }, files)
	case m.Leave != "":
		if old := s.replace(m.Leave, nil); old != nil {
			old.close()
		}
	default:
		packet.CloseAll(files)
	}
}

// begin begins to serve, or goes on with another copy of the listener.
func (s *Server) begin(of link.Serve, prepare func(*door) (served, error), files []*os.File) {
	d, err := newDoor(of, files[len(files)-1], s.times)
	if err != nil {
		packet.CloseAll(files)
		log.Printf("%s: cannot serve: %v", of.Name, err)
		return
	}
	next, err := prepare(d)
	if err != nil {
		d.close()
		log.Printf("%s: cannot serve: %v", of.Name, err)
		return
	}
	if old := s.replace(of.Name, next); old != nil {
		old.close()
	}
	next.start()
}

// replace has another served under a name; nil: none. It returns the one before; nil: there was none.
func (s *Server) replace(name string, next served) served {
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.served[name]
	if delete(s.served, name); next != nil {
		s.served[name] = next
	}
	return old
}

// forget takes out what has ended by itself, unless another has its name.
func (s *Server) forget(name string, ended served) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.served[name] == ended {
		delete(s.served, name)
	}
}

func (s *Server) finish() {
	s.mu.Lock()
	all := slices.Collect(maps.Values(s.served))
	s.mu.Unlock()
	var ends sync.WaitGroup
	for _, one := range all {
		ends.Go(one.finish)
	}
	ends.Wait()
}
