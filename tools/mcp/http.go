package mcp

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"os"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"clove.run/clove/internal/bounded"
)

// Path is where clients of HTTP find the server.
const Path = "/mcp"

// clientHeader has the number of a request over HTTP, for door.enter. A client's own is overwritten.
const clientHeader = "Clove-Client"

// handler serves one listener.
type handler struct {
	*door
	server   *http.Server
	listener net.Listener
	requests chan struct{} // places
	all      *bounded.Bytes
	own      *bounded.Bytes
	sessions *sessions
	current  http.Handler // without sessions
	older    http.Handler // of the revisions that have sessions
}

// listen makes what serves a listener.
func (s *Server) listen(d *door, file *os.File) (served, error) {
	listener, err := net.FileListener(file)
	file.Close()
	if err != nil {
		return nil, err
	}
	h := &handler{door: d, listener: bounded.NewListener(listener, maxConnections), requests: make(chan struct{}, maxRequests), all: s.bodies, own: bounded.NewBytes(maxOwnBodies), sessions: newSessions()}
	h.sessions.server = d.server(h.sessions.newID)
	single := d.server(nil)
	// The SDK refuses other names of this machine, too, on a loopback address.
	h.current = sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return single },
		&sdk.StreamableHTTPOptions{Stateless: true, PropagateRequestCancellation: true, MaxRequestBodyBytes: maxBody})
	h.older = sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return h.sessions.server },
		&sdk.StreamableHTTPOptions{SessionTimeout: sessionTime, MaxRequestBodyBytes: maxBody})
	h.server = &http.Server{
		Handler: h, ReadHeaderTimeout: headerTime, ReadTimeout: bodyTime, IdleTimeout: idleTime, MaxHeaderBytes: maxHeader,
		ErrorLog: log.New(io.Discard, "", 0), // what a client does wrong is not the host's to read
	}
	return h, nil
}

func (h *handler) start() {
	go h.server.Serve(h.listener) // ends with Close or Shutdown
}

func (h *handler) close() {
	h.door.close()
	h.server.Close()
	h.endSessions()
}

func (h *handler) finish() {
	h.leave()
	_ = h.server.Shutdown(context.Background()) // an error is of a listener's close
	h.close()
}

// endSessions ends the sessions that no client can reach any more, and the timers that they have.
func (h *handler) endSessions() {
	for session := range h.sessions.server.Sessions() {
		_ = session.Close()
	}
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.URL.Path != Path:
		http.Error(w, "MCP is served at "+Path, http.StatusNotFound)
	case !ours(r):
		http.Error(w, "this server is for programs of this machine: use http://127.0.0.1 or http://localhost", http.StatusForbidden)
	case !authorized(r, h.Token):
		w.Header().Set("WWW-Authenticate", "Bearer")
		http.Error(w, "the request needs the server's token, as Authorization: Bearer TOKEN", http.StatusUnauthorized)
	case r.Method == http.MethodPost:
		h.post(w, r)
	case r.Method == http.MethodDelete && h.sessions.made(r.Header.Get(sessionHeader)):
		id := r.Header.Get(sessionHeader)
		h.cancel(func(r *request) bool { return r.session == id }) // the SDK waits for them
		h.older.ServeHTTP(w, r)
	default: // a stream of the server's own messages, of which there are none
		w.Header().Set("Allow", "POST")
		http.Error(w, "send it with POST", http.StatusMethodNotAllowed)
	}
}

// post serves one message.
func (h *handler) post(w http.ResponseWriter, r *http.Request) {
	select {
	case h.requests <- struct{}{}:
		defer func() { <-h.requests }()
	default:
		busy(w, "too many requests are in flight")
		return
	}
	body, release, ok := h.body(w, r)
	if !ok {
		return
	}
	defer release()
	if trimmed := bytes.TrimLeft(body, " \t\r\n"); len(trimmed) > 0 && trimmed[0] == '[' {
		http.Error(w, "send one message in a request", http.StatusBadRequest)
		return
	}
	out := newAnswer(w, h.times.write)
	number, end := h.admit(client{ctx: r.Context(), out: out})
	defer end()
	r.Header.Set(clientHeader, number)
	r.Body = io.NopCloser(bytes.NewReader(body))
	h.route(out, r, read(body))
}

// route chooses the handler of the SDK's.
func (h *handler) route(w http.ResponseWriter, r *http.Request, m message) {
	id := r.Header.Get(sessionHeader)
	switch {
	case m.current(r.Header):
		h.current.ServeHTTP(w, r)
	case h.sessions.made(id):
		defer h.sessions.enter(id)()
		h.older.ServeHTTP(w, r)
	case id == "" && m.Method == "initialize":
		end, ok := h.sessions.begin()
		if !ok {
			busy(w, "too many sessions have requests in flight")
			return
		}
		defer end()
		h.older.ServeHTTP(w, r)
	default: // of a session of an earlier process, or of none: it stands for itself
		h.current.ServeHTTP(w, r)
	}
}

// body reads a request's body. release gives back the room that it takes.
func (h *handler) body(w http.ResponseWriter, r *http.Request) (body []byte, release func(), ok bool) {
	size := r.ContentLength
	if size < 0 {
		size = maxBody // chunked: as much as it may become
	}
	if size > maxBody {
		large(w)
		return nil, nil, false
	}
	if !h.own.Take(size) {
		busy(w, "too many large requests are in flight")
		return nil, nil, false
	}
	if !h.all.Take(size) {
		h.own.Give(size)
		busy(w, "too many large requests are in flight")
		return nil, nil, false
	}
	release = func() { h.all.Give(size); h.own.Give(size) }
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err == nil {
		return body, release, true
	}
	release()
	if tooLong := (*http.MaxBytesError)(nil); errors.As(err, &tooLong) {
		large(w)
	} else {
		http.Error(w, "the request broke off", http.StatusBadRequest)
	}
	return nil, nil, false
}

func busy(w http.ResponseWriter, why string) {
	w.Header().Set("Retry-After", "1")
	http.Error(w, why, http.StatusServiceUnavailable)
}

func large(w http.ResponseWriter) {
	http.Error(w, "the request is too large", http.StatusRequestEntityTooLarge)
}
