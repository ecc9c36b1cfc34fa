package control

import (
	"bytes"
	"errors"
	"io"
	"net"
	"strings"
	"testing"

	"clove.run/clove/agent"
	"clove.run/clove/models/link"
)

// kept is a log of a run.
type kept struct {
	calls  chan [3]string // title, request, answer
	closed chan struct{}
}

func newKept() *kept { return &kept{make(chan [3]string, 256), make(chan struct{})} }

func (l *kept) Add(title string, request, answer []byte) {
	l.calls <- [3]string{title, string(request), string(answer)}
}

func (l *kept) Close() error { close(l.closed); return nil }

// copying returns what control reads of a copy.
func copying(request, answer string) io.Reader {
	var b bytes.Buffer
	_ = link.SendBody(&b, []byte(request)) // a buffer takes all
	b.WriteString(answer)
	return &b
}

// What is said is kept up to a bound, and the title says what is missing.
func TestContentsAreBounded(t *testing.T) {
	t.Parallel()
	r, log := newRig(t), newKept()
	l := &contents{log: log, room: &r.held}
	large := strings.Repeat("x", maxContent+7)
	l.keep("title", copying(large, large))
	if got := within(t, log.calls); got[0] != "title, request cut after 1048576 of 1048583 bytes, answer cut after 1048576 of 1048583 bytes" || len(got[1]) != maxContent || len(got[2]) != maxContent {
		t.Errorf("%s, %d, %d", got[0], len(got[1]), len(got[2]))
	}
	if r.held.used != 0 {
		t.Errorf("%d bytes are held", r.held.used)
	}
	r.held.used = maxHeld - 8
	l.keep("title", copying("12345678", "9"))
	if got := within(t, log.calls); got != [3]string{"title, answer cut after 0 of 1 bytes", "12345678", ""} {
		t.Errorf("%q", got)
	}
	if r.held.used != maxHeld-8 {
		t.Errorf("%d bytes are held", r.held.used)
	}
	l.keep("title", strings.NewReader("xxxx")) // a size that no body has
	l.keep("title", strings.NewReader("\x00")) // no size
	l.keep("broken", copying("request", ""))   // no answer came
	if got := within(t, log.calls); got != [3]string{"broken", "request", ""} {
		t.Errorf("%q", got)
	}
}

// A run that asks for its contents has each call copied, and its log closed behind the last
// one. Others have nothing copied.
func TestOnlyARunThatAsksIsCopied(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	log := newKept()
	r.desk.Contents = func(agent.ID) (Contents, error) { return log, nil }
	quiet, front := r.started()
	front.begin(ask(1, quiet, "small"))
	up := within(t, r.upstreams)
	plain := within(t, up.up).Call
	if n := up.files.Load(); n != 1 {
		t.Errorf("%d descriptors came with a call of which nothing is kept", n)
	}
	run := r.serveLogged(1000)
	within(t, front.front)
	front.begin(ask(2, run, "small"))
	within(t, up.up)
	if n := up.files.Load(); n != 3 { // the fake closes them: nothing is copied
		t.Errorf("%d descriptors", n)
	}
	up.send(link.FromUpstream{Done: &link.Done{Number: plain.Number + 1, Status: 200, Sent: true, Complete: true}})
	within(t, r.ledger.settled)
	r.leave(r.runs.get(run.Spec.ID))
	within(t, log.closed)
}

// A run whose log cannot be opened is not served without one.
func TestARunIsNotServedWithoutItsLog(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for _, open := range []func(agent.ID) (Contents, error){nil, func(agent.ID) (Contents, error) { return nil, errors.New("no room") }} {
		r.desk.Contents = open
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer listener.Close()
		file, err := listener.(*net.TCPListener).File()
		if err != nil {
			t.Fatal(err)
		}
		run := agent.Run{Spec: agent.Spec{ID: agent.NewID(), Kernel: agent.Kernel{ModelLog: true}}}
		if _, err := r.Serve(t.Context(), run, file); err == nil {
			t.Error("it is served")
		}
	}
	if len(r.runs.each()) != 0 {
		t.Errorf("%v", r.runs.each())
	}
}
