package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"path/filepath"
	"testing"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/methods"
	"clove.run/clove/internal/rpc"
)

// attachable is a server whose agent the test plays: it reads and writes the other ends of the
// streams.
func attachable(t *testing.T) *server {
	t.Helper()
	s := &supervisor{hub: newHub(), ended: make(chan struct{})}
	var err error
	s.streams, err = openStreams(false, true, func(stream string) io.Writer { return hubWriter{s.hub, stream} })
	must(t, err)
	t.Cleanup(s.streams.close)
	v := &server{supervisor: s}
	v.context, v.cancel = context.WithCancel(t.Context())
	t.Cleanup(v.cancel)
	return v
}

// attached begins a session over a socket. over is closed when the server has ended the
// session.
func attached(t *testing.T, v *server) (caller *rpc.Conn, over chan struct{}) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s")
	listener, err := net.Listen("unix", path)
	must(t, err)
	defer listener.Close()
	caller, err = rpc.Dial(t.Context(), path)
	must(t, err)
	t.Cleanup(func() { caller.Close() })
	must(t, caller.SetDeadline(time.Now().Add(time.Minute)))
	conn, err := listener.Accept()
	must(t, err)
	must(t, caller.Request(methods.RunAttach.Name, api.AttachParams{}))
	over = make(chan struct{})
	go func() {
		defer close(over)
		served := rpc.New(conn)
		defer served.Close()
		if request, err := served.Receive(); err == nil {
			v.attach(served, request)
		}
	}()
	return caller, over
}

// typed sends a line and waits until the agent gets it: then the session is attached.
func typed(t *testing.T, v *server, caller *rpc.Conn) {
	t.Helper()
	must(t, caller.Notify(api.NoteInput, api.SessionInput{Data: []byte("typed")}))
	buffer := make([]byte, 5)
	if _, err := io.ReadFull(v.streams.io.Stdin, buffer); err != nil || string(buffer) != "typed" {
		t.Fatalf("%q, %v", buffer, err)
	}
}

// heard reads the session to its end.
func heard(t *testing.T, caller *rpc.Conn) (text string, result api.AttachResult) {
	t.Helper()
	must(t, caller.Answer(t.Context(), &result, func(m rpc.Message) error {
		var piece api.SessionOutput
		err := json.Unmarshal(m.Params, &piece)
		text += string(piece.Data)
		return err
	}, func(text json.RawMessage) error { return errors.New(string(text)) }))
	return text, result
}

func TestAttachEndsWithTheAgent(t *testing.T) {
	t.Parallel()
	v := attachable(t)
	caller, over := attached(t, v)
	typed(t, v, caller)
	_, err := v.streams.io.Stdout.WriteString("last words")
	must(t, err)
	v.streams.close()
	v.record = agent.Record{ExitCode: 7}
	close(v.ended)
	v.hub.close()
	if text, result := heard(t, caller); text != "last words" || result.ExitCode != 7 || result.Detached || result.Record == nil {
		t.Errorf("%q, %+v", text, result)
	}
	<-over
}

func TestAttachEndsWithDetach(t *testing.T) {
	t.Parallel()
	v := attachable(t)
	caller, over := attached(t, v)
	typed(t, v, caller)
	must(t, caller.Notify(api.NoteDetach, api.Nothing{}))
	if _, result := heard(t, caller); !result.Detached {
		t.Errorf("%+v", result)
	}
	<-over
	// The agent continues, and the next caller gets its streams.
	next, _ := attached(t, v)
	typed(t, v, next)
}

// A session whose caller closes while the agent reads nothing ends at once.
func TestAttachEndsWithItsCaller(t *testing.T) {
	t.Parallel()
	v := attachable(t)
	caller, over := attached(t, v)
	typed(t, v, caller)
	must(t, caller.Notify(api.NoteInput, api.SessionInput{Data: make([]byte, 1<<20)})) // read by the server, and larger than the pipe
	caller.Close()
	<-over
	if n := len(v.hub.listeners); n != 0 {
		t.Errorf("%d listeners are left", n)
	}
}
