package socket

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/api"
	"clove.run/clove/api/agents"
	"clove.run/clove/internal/rpc"
	"clove.run/clove/kernel/channel"
)

// patience bounds every wait of a test, also on a loaded machine.
const patience = time.Minute

// rig is a server on a real socket, and the supervisor's side of its channel.
type rig struct {
	t      *testing.T
	server *Server
	path   string
	super  *channel.Conn
	asked  chan channel.FromGate // what the gate passed on
}

// newRig serves the processes of the test's own user.
func newRig(t *testing.T) *rig { return newRigFor(t, uint32(os.Getuid())) }

func newRigFor(t *testing.T, uid uint32) *rig {
	t.Helper()
	r := &rig{t: t, path: filepath.Join(t.TempDir(), "agent.sock"), asked: make(chan channel.FromGate, 1000)}
	var calls *channel.Conn
	r.super, calls = pair(t)
	r.server = New(calls, uid, 1)
	options := net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) (err error) {
		failed := raw.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_PASSCRED, 1) })
		return errors.Join(failed, err)
	}}
	listener, err := options.Listen(context.Background(), "unix", r.path)
	must(t, err)
	ended := make(chan struct{}, 3)
	go func() { r.server.Accept(listener.(*net.UnixListener)); ended <- struct{}{} }()
	go func() { _ = r.server.Receive(); ended <- struct{}{} }()
	go func() { r.receive(); ended <- struct{}{} }()
	t.Cleanup(func() {
		listener.Close()
		calls.Close()
		r.super.Close()
		for range 3 {
			<-ended
		}
	})
	return r
}

// pair is both sides of a channel.
func pair(t testing.TB) (super, gate *channel.Conn) {
	t.Helper()
	super, gate, err := channel.Both()
	must(t, err)
	return super, gate
}

func (r *rig) receive() {
	for {
		var m channel.FromGate
		if r.super.Receive(&m) != nil {
			return
		}
		r.asked <- m
	}
}

// next returns what the gate passed on next.
func (r *rig) next() channel.FromGate {
	r.t.Helper()
	select {
	case m := <-r.asked:
		return m
	case <-time.After(patience):
		r.t.Fatal("nothing was passed on")
		return channel.FromGate{}
	}
}

// call returns the call that the gate passed on next.
func (r *rig) call() channel.Call {
	r.t.Helper()
	m := r.next()
	if m.Call == nil {
		r.t.Fatalf("%+v is no call", m)
	}
	return *m.Call
}

func (r *rig) answer(number uint64, result string) {
	r.t.Helper()
	must(r.t, r.super.Send(channel.ToGate{Answer: &channel.Answer{Number: number, Result: json.RawMessage(result)}}))
}

func (r *rig) notify(method string) {
	r.t.Helper()
	must(r.t, r.super.Send(channel.ToGate{Notice: &channel.Notice{Notice: api.Notice{Method: method, Params: json.RawMessage("{}")}}}))
}

// wantNothing fails the test if the gate passed something on. A call that is answered by
// the gate comes after everything before it on the same connection.
func (r *rig) wantNothing() {
	r.t.Helper()
	if len(r.asked) > 0 {
		r.t.Errorf("it was passed on: %+v", <-r.asked)
	}
}

// peer is one connection of the agent's.
type peer struct {
	t *testing.T
	*net.UnixConn
	lines *bufio.Reader
}

func (r *rig) dial() *peer {
	r.t.Helper()
	conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: r.path, Net: "unix"})
	must(r.t, err)
	must(r.t, conn.SetDeadline(time.Now().Add(patience)))
	r.t.Cleanup(func() { conn.Close() })
	return &peer{r.t, conn, bufio.NewReaderSize(conn, 1<<20)}
}

// send writes lines; it fails where the server has ended the connection.
func (p *peer) send(lines ...string) error {
	_, err := p.Write([]byte(strings.Join(lines, "\n") + "\n"))
	return err
}

// ask sends a request for agent.get.
func (p *peer) ask(id int) {
	p.t.Helper()
	must(p.t, p.send(request(id, agents.AgentGet.Name, "{}")))
}

func request(id any, method, params string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%v,"method":%q,"params":%s}`, id, method, params)
}

// next reads a message.
func (p *peer) next() (m rpc.Message) {
	p.t.Helper()
	line, err := p.lines.ReadBytes('\n')
	must(p.t, err)
	must(p.t, json.Unmarshal(line, &m))
	return m
}

// wantError reads an answer and compares its id and code.
func (p *peer) wantError(id string, code api.Code) {
	p.t.Helper()
	m := p.next()
	if e := api.ParseError(m.Error); len(m.Error) == 0 || e.Code != code || string(m.ID) != id {
		p.t.Errorf("id %q, error %q, result %q; want id %q, code %d", m.ID, m.Error, m.Result, id, code)
	}
}

// wantResult reads an answer.
func (p *peer) wantResult(id, result string) {
	p.t.Helper()
	if m := p.next(); string(m.ID) != id || string(m.Result) != result {
		p.t.Errorf("id %q, error %q, result %.100q; want id %q, %.100q", m.ID, m.Error, m.Result, id, result)
	}
}

// wantEnd reads until the connection ends, and returns how many bytes came.
func (p *peer) wantEnd() int64 {
	p.t.Helper()
	n, err := io.Copy(io.Discard, p.lines)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		p.t.Fatal("the connection does not end")
	}
	return n
}

// works sends a call and answers it. Calls of connections that end are cancelled meanwhile.
func (r *rig) works(p *peer) {
	r.t.Helper()
	p.ask(77)
	m := r.next()
	for m.Call == nil {
		m = r.next()
	}
	r.answer(m.Call.Number, `{"works":true}`)
	p.wantResult("77", `{"works":true}`)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
