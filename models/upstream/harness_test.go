package upstream

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/internal/packet"
	"clove.run/clove/internal/passfd"
	"clove.run/clove/models"
	"clove.run/clove/models/link"
)

// testKey is the key of the provider.
const testKey = "sk-key-of-the-test"

// patience is a limit that no test runs into, also on a loaded machine.
const patience = 10 * time.Minute

// rig is a Server with a control that connects to one provider, over real sockets.
type rig struct {
	t      *testing.T
	conn   *packet.Conn
	done   chan link.Done
	served chan error
	last   uint64
	dials  atomic.Int64
	more   atomic.Int64 // what is reserved for a call that asks for more
	asked  atomic.Int64 // how often one did
}

// newRig serves one provider, named p. change may change it; nil: as it is.
func newRig(t *testing.T, provider http.HandlerFunc, change func(*link.Setup)) *rig {
	t.Helper()
	return newRigWith(t, provider, change)
}

// newRigWith is newRig with a Server that is changed.
func newRigWith(t *testing.T, provider http.HandlerFunc, change func(*link.Setup), server ...func(*Server)) *rig {
	t.Helper()
	web := httptest.NewServer(provider)
	t.Cleanup(web.Close)
	p := link.Provider{Endpoints: map[models.Format]string{}, Key: testKey, First: patience, Pause: patience, Total: patience}
	for _, f := range []models.Format{models.OpenAIChat, models.OpenAIResponses, models.AnthropicMessages, models.AnthropicCount} {
		p.Endpoints[f] = "http://provider.test/" + string(f)
	}
	setup := link.Setup{Providers: map[string]link.Provider{"p": p}}
	if change != nil {
		change(&setup)
	}
	return startRig(t, setup, web.Listener.Addr().String(), server...)
}

// startRig has the Server's connections lead to an address. change may change the Server.
func startRig(t *testing.T, setup link.Setup, address string, change ...func(*Server)) *rig {
	t.Helper()
	conn, file, err := packet.Pair()
	if err != nil {
		t.Fatal(err)
	}
	server, err := New(packet.New(file), nil, setup)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range change {
		f(server)
	}
	r := &rig{t: t, conn: conn, done: make(chan link.Done, 256), served: make(chan error, 1)}
	go func() { r.served <- server.Serve() }()
	go r.control(address)
	t.Cleanup(func() { conn.Close() })
	return r
}

// control does what models/control does: it connects, and hears how calls ended.
func (r *rig) control(address string) {
	for {
		var m link.FromUpstream
		files, err := r.conn.Receive(&m)
		packet.CloseAll(files)
		switch {
		case err != nil:
			return
		case m.Done != nil:
			r.done <- *m.Done
		case m.More != 0:
			r.asked.Add(1)
			_ = r.conn.Send(link.ToUpstream{More: &link.More{Call: m.More, MostOut: r.more.Load()}})
		case m.Dial != nil:
			r.dials.Add(1)
			r.connect(m.Dial.Number, address)
		}
	}
}

func (r *rig) connect(number uint64, address string) {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		_ = r.conn.Send(link.ToUpstream{Socket: &link.Socket{Number: number, Error: err.Error()}})
		return
	}
	defer conn.Close()
	if file, err := conn.(*net.TCPConn).File(); err == nil {
		_ = r.conn.Send(link.ToUpstream{Socket: &link.Socket{Number: number}}, file)
		file.Close()
	}
}

// begin orders a call, and returns the stream with its body sent.
func (r *rig) begin(c link.Call, body string, copies ...*os.File) *os.File {
	r.t.Helper()
	near := r.order(c, copies...)
	r.send(near, body)
	return near
}

// send sends the body of an ordered call. A call that is refused before its body was read closes
// the stream: then the body fails with EPIPE, and the answer is on the stream already.
func (r *rig) send(near io.Writer, body string) {
	r.t.Helper()
	if err := link.SendBody(near, []byte(body)); err != nil && !errors.Is(err, unix.EPIPE) {
		r.t.Fatal(err)
	}
}

// order orders a call, and returns the stream on which its body is to come.
func (r *rig) order(c link.Call, copies ...*os.File) *os.File {
	r.t.Helper()
	r.last++
	if c.Number = r.last; c.Provider == "" {
		c.Provider = "p"
	}
	near, far, err := passfd.Pair(unix.SOCK_STREAM | unix.SOCK_NONBLOCK)
	if err == nil {
		err = r.conn.Send(link.ToUpstream{Call: &c}, append([]*os.File{far}, copies...)...)
		far.Close()
		packet.CloseAll(copies)
	}
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { near.Close() })
	return near
}

// answer is what came on a stream.
type answer struct {
	head link.Head
	text string
	err  error // nil: it is whole
}

func receive(stream io.Reader) (a answer) {
	reader := link.NewReader(stream)
	if a.head, a.err = reader.Head(); a.err != nil {
		return a
	}
	var text strings.Builder
	for a.err == nil {
		var part []byte
		part, a.err = reader.Next()
		text.Write(part)
	}
	if a.text = text.String(); a.err == io.EOF {
		a.err = nil
	}
	return a
}

// ended waits for the report of a call.
func (r *rig) ended() link.Done {
	r.t.Helper()
	select {
	case d := <-r.done:
		return d
	case <-time.After(30 * time.Second):
		r.t.Fatal("no call ended")
		return link.Done{}
	}
}

// call makes one whole call.
func (r *rig) call(c link.Call, body string) (answer, link.Done) {
	r.t.Helper()
	a := receive(r.begin(c, body))
	return a, r.ended()
}

// untilGone ends when the client of a request has gone.
func untilGone(r *http.Request) { <-r.Context().Done() }
