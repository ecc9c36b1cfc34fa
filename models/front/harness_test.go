package front

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/internal/packet"
	"clove.run/clove/internal/passfd"
	"clove.run/clove/models/link"
)

const theRun = agent.ID("0123456789abcdef")

// soon bounds every wait of a test.
const soon = 20 * time.Second

// rig is a Server with an agent's listener, a control that decides as the test says, and a
// provider's side that answers as it says.
type rig struct {
	t       *testing.T
	conn    *packet.Conn
	address string
	served  chan error
	begun   chan link.Begin // what was asked
	bodies  chan string     // what came for the provider
	cancels chan uint64
	sides   atomic.Int64 // streams whose provider's side has not ended

	decide  func(b link.Begin) link.ToFront        // nil: everything goes
	provide func(stream *os.File, out link.Answer) // behind the body; nil: an empty answer
}

// newRig starts a Server for one run. set changes the rig before.
func newRig(t *testing.T, set func(*rig)) *rig {
	t.Helper()
	conn, file, err := packet.Pair()
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, conn: conn, served: make(chan error, 1), begun: make(chan link.Begin, 512), bodies: make(chan string, 512), cancels: make(chan uint64, 512)}
	r.decide = func(b link.Begin) link.ToFront { return link.ToFront{Go: &link.Go{Number: b.Number, Model: "theirs"}} }
	r.provide = func(_ *os.File, out link.Answer) {
		_ = out.Head(link.Head{Status: 200, Type: "application/json"})
		_ = out.End(link.End{})
	}
	if set != nil {
		set(r)
	}
	go func() { r.served <- New(packet.New(file)).Serve() }()
	go r.control()
	t.Cleanup(func() { conn.Close() })
	r.listen()
	return r
}

// listen gives the run a listener of its own.
func (r *rig) listen() { r.address = r.listenFor(theRun) }

// listenFor gives a run a listener of its own, and returns its address.
func (r *rig) listenFor(run agent.ID) string {
	r.t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		r.t.Fatal(err)
	}
	defer listener.Close()
	copied, err := listener.(*net.TCPListener).File()
	if err == nil {
		err = r.conn.Send(link.ToFront{Serve: &link.Serve{Run: run}}, copied)
		copied.Close()
	}
	if err != nil {
		r.t.Fatal(err)
	}
	return listener.Addr().String()
}

func (r *rig) control() {
	for {
		var m link.FromFront
		files, err := r.conn.Receive(&m)
		packet.CloseAll(files)
		switch {
		case err != nil:
			return
		case m.Begin != nil:
			r.begun <- *m.Begin
			r.answer(r.decide(*m.Begin))
		case m.List != nil:
			_ = r.conn.Send(link.ToFront{Names: &link.Names{Number: m.List.Number, Names: []string{"echo", "small"}, Formats: map[string][]string{"small": {"openai-chat"}}[m.List.Model]}})
		case m.Cancel != 0:
			r.cancels <- m.Cancel
		}
	}
}

// fromControl sends what control decided, with a stream where the call goes.
func (r *rig) answer(m link.ToFront) {
	if m.Go == nil {
		if m != (link.ToFront{}) {
			_ = r.conn.Send(m)
		}
		return
	}
	near, far, err := passfd.Pair(unix.SOCK_STREAM | unix.SOCK_NONBLOCK)
	if err != nil {
		r.t.Error(err)
		return
	}
	_ = r.conn.Send(m, near)
	near.Close()
	r.sides.Add(1)
	go func() {
		defer r.sides.Add(-1)
		defer far.Close()
		if body, err := link.ReceiveBody(far, func(int64) bool { return true }); err == nil {
			r.bodies <- string(body)
			r.provide(far, link.Answer{W: far})
		}
	}()
}

// client has a connection for each request.
var client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: soon}

// reply is an answer that an agent got.
type reply struct {
	status int
	header http.Header
	text   string
	err    error // that broke it off
}

// ask sends a request; headers are name, value, name, value.
func (r *rig) ask(method, path, body string, headers ...string) reply {
	r.t.Helper()
	q, err := http.NewRequest(method, "http://"+r.address+path, strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		q.Header.Set(headers[i], headers[i+1])
	}
	a, err := client.Do(q)
	if err != nil {
		return reply{err: err}
	}
	defer a.Body.Close()
	text, err := io.ReadAll(a.Body)
	return reply{a.StatusCode, a.Header, string(text), err}
}

// raw sends bytes, and returns the statuses of all answers until the server closes.
func (r *rig) raw(text string) (statuses []int) {
	r.t.Helper()
	conn, err := net.Dial("tcp", r.address)
	if err != nil {
		r.t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(soon))
	go io.WriteString(conn, text)
	reader := bufio.NewReader(conn)
	for {
		a, err := http.ReadResponse(reader, nil)
		if err != nil {
			return statuses
		}
		_, _ = io.Copy(io.Discard, a.Body)
		a.Body.Close()
		statuses = append(statuses, a.StatusCode)
	}
}

// within waits for a value.
func within[T any](t *testing.T, from <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-from:
	case <-time.After(soon):
		t.Fatal("nothing came")
	}
	return v
}

// chat is a request of OpenAI's format with more fields.
func chat(more string) string {
	return fmt.Sprintf(`{"model":"small","messages":[{"role":"user","content":"Hello"}]%s}`, more)
}
