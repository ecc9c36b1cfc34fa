// Package front is the HTTP server of clove-models: it reads the requests of agents, and asks
// control for each decision. It holds no key and reaches no network; a call's body goes to
// clove-upstream over a stream that comes with control's permission.
//
// Each listener is one run's. Everything is bounded: connections, calls in flight, the size
// of a request, the time for reading one.
package front

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"os"
	"slices"
	"sync"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/internal/bounded"
	"clove.run/clove/internal/packet"
	"clove.run/clove/models/link"
)

const (
	maxConnections = 128 // of one agent, open at once
	maxCalls       = 64  // of one agent, in flight
	maxHeader      = 64 << 10
	// maxBodies bounds the bytes of all requests that are held at once, for all agents.
	maxBodies = 256 << 20
	// maxOwnBodies bounds those of one agent: it takes no room from the owner's others by
	// beginning requests that it never ends.
	maxOwnBodies = maxBodies / 4

	headerTime = 10 * time.Second
	bodyTime   = 2 * time.Minute
	idleTime   = 5 * time.Minute
)

// Server serves the agents of one owner.
type Server struct {
	control *packet.Conn
	bodies  *bounded.Bytes
	clients *clients     // of a scripted provider; nil: agents are served
	serving *http.Server // clients

	mu      sync.Mutex // guards the following
	last    uint64
	waiting map[uint64]*question // by the number of a Begin or List
	agents  map[agent.ID]*http.Server
	alone   bool // control is gone
}

// New makes a server that has control decide.
func New(control *packet.Conn) *Server {
	return &Server{control: control, bodies: bounded.NewBytes(maxBodies), waiting: map[uint64]*question{}, agents: map[agent.ID]*http.Server{}}
}

// Serve serves until control is gone. Then it lets the calls in flight come to their end, and
// returns nil: connections that come later wait in the listeners for the next clove-models.
func (s *Server) Serve() error {
	if err := s.control.Send(link.FromFront{Ready: true}); err != nil {
		return err
	}
	for {
		var m link.ToFront
		files, err := s.control.Receive(&m)
		if errors.Is(err, io.EOF) {
			s.finish()
			return nil
		}
		if err != nil {
			return fmt.Errorf("cannot serve: %w", err)
		}
		if m.Script != nil {
			if err := s.provide(m.Script.Text); err != nil {
				return err
			}
			continue
		}
		s.receive(m, files)
	}
}

func (s *Server) receive(m link.ToFront, files []*os.File) {
	switch {
	case m.Client && len(files) == 1 && s.clients != nil:
		s.clients.add(files[0])
	case m.Serve != nil && len(files) == 1:
		s.serve(m.Serve.Run, files[0])
	case m.Leave != "":
		s.leave(m.Leave)
	case m.Go != nil && len(files) == 1:
		s.deliver(m.Go.Number, fromControl{m, files[0]})
	case m.Refuse != nil:
		s.deliver(m.Refuse.Number, fromControl{message: m})
	case m.Names != nil:
		s.deliver(m.Names.Number, fromControl{message: m})
	default:
		packet.CloseAll(files)
	}
}

// serve begins to serve a run, or goes on with another copy of its listener.
func (s *Server) serve(run agent.ID, file *os.File) {
	listener, err := net.FileListener(file)
	file.Close()
	if err != nil {
		log.Printf("run %s: cannot listen: %v", run, err)
		return
	}
	server := &http.Server{
		Handler:           &handler{server: s, run: run, calls: make(chan struct{}, maxCalls), bodies: bounded.NewBytes(maxOwnBodies)},
		ReadHeaderTimeout: headerTime, ReadTimeout: bodyTime, IdleTimeout: idleTime, MaxHeaderBytes: maxHeader,
		ErrorLog: log.New(nowhere{}, "", 0), // what an agent does wrong is not the host's to read
	}
	s.mu.Lock()
	old := s.agents[run]
	s.agents[run] = server
	s.mu.Unlock()
	if old != nil {
		old.Close()
	}
	go server.Serve(bounded.NewListener(listener, maxConnections)) // ends with Close
}

// leave ends everything of a run's.
func (s *Server) leave(run agent.ID) {
	s.mu.Lock()
	server := s.agents[run]
	delete(s.agents, run)
	s.mu.Unlock()
	if server != nil {
		server.Close()
	}
}

// finish refuses what control has not decided, accepts nothing more, and waits for the calls in
// flight.
func (s *Server) finish() {
	s.mu.Lock()
	s.alone = true
	servers := slices.Collect(maps.Values(s.agents))
	for _, q := range s.waiting {
		select {
		case q.answers <- away:
		default: // it has as many answers as an honest control gives
		}
	}
	s.mu.Unlock()
	if s.serving != nil {
		servers = append(servers, s.serving)
	}
	var all sync.WaitGroup
	for _, server := range servers {
		all.Go(func() { _ = server.Shutdown(context.Background()) }) // an error is of a listener's close
	}
	all.Wait()
}

// away answers for a control that is gone.
var away = fromControl{message: link.ToFront{Refuse: &link.Refuse{Reason: link.ReasonBusy, Message: "cloved is away", Hint: "ask again", After: 1}}}

// nowhere drops what is written to it.
type nowhere struct{}

func (nowhere) Write(p []byte) (int, error) { return len(p), nil }
