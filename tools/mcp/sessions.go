package mcp

import (
	"crypto/rand"
	"strings"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// sessions are those of one listener.
type sessions struct {
	prefix string // of the ids that this process has made
	server *sdk.Server

	mu    sync.Mutex // guards the following
	begun int        // initialize requests in flight
	used  map[string]*use
}

// use is that of a session.
type use struct {
	last   time.Time
	flying int // requests
}

func newSessions() *sessions {
	return &sessions{prefix: rand.Text()[:8] + "-", used: map[string]*use{}}
}

func (s *sessions) newID() string { return s.prefix + rand.Text() }

// made reports whether this process has made an id.
func (s *sessions) made(id string) bool { return strings.HasPrefix(id, s.prefix) }

// begin makes room for one more session: where there are too many, the one that was idle longest ends. It
// reports whether there is room. The caller calls end when the session has begun.
func (s *sessions) begin() (end func(), ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	live := map[string]*sdk.ServerSession{}
	for session := range s.server.Sessions() {
		live[session.ID()] = session
		if s.used[session.ID()] == nil {
			s.used[session.ID()] = &use{last: time.Now()}
		}
	}
	var oldest string
	for id, use := range s.used {
		switch {
		case live[id] == nil && use.flying == 0:
			delete(s.used, id)
		case use.flying == 0 && (oldest == "" || use.last.Before(s.used[oldest].last)):
			oldest = id
		}
	}
	if len(live)+s.begun >= maxSessions {
		if oldest == "" {
			return nil, false
		}
		delete(s.used, oldest)
		_ = live[oldest].Close() // it has no call in flight
	}
	s.begun++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.begun--
	}, true
}

// enter notes a request of a session. Of one that there is not, nothing is kept.
func (s *sessions) enter(id string) (leave func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	u := s.used[id]
	if u == nil {
		if !s.lives(id) {
			return func() {}
		}
		u = &use{}
		s.used[id] = u
	}
	u.flying++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		u.flying--
		u.last = time.Now()
	}
}

func (s *sessions) lives(id string) bool {
	for session := range s.server.Sessions() {
		if session.ID() == id {
			return true
		}
	}
	return false
}
