package supervisor

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/daemon/logs"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// collected is what one stream wrote.
type collected struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (c *collected) Write(data []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.text.Write(data)
}

// Everything that is written to the agent's ends arrives at the sinks before close returns.
func TestPipes(t *testing.T) {
	t.Parallel()
	out, errs := &collected{}, &collected{}
	s, err := openStreams(false, true, func(stream string) io.Writer { return map[string]io.Writer{stdout: out, stderr: errs}[stream] })
	must(t, err)
	cat := make(chan error, 1)
	go func() { _, err := io.Copy(s.io.Stdout, s.io.Stdin); cat <- err }() // plays the agent
	_, err = s.input.Write([]byte("typed"))
	must(t, err)
	s.closeInput()
	must(t, <-cat)
	_, err = s.io.Stderr.Write([]byte(strings.Repeat("e", 200000)))
	must(t, err)
	s.close()
	if errs.text.Len() != 200000 || out.text.String() != "typed" {
		t.Errorf("%d bytes, %q", errs.text.Len(), out.text.String())
	}
}

func TestWithoutStdin(t *testing.T) {
	t.Parallel()
	s, err := openStreams(false, false, func(string) io.Writer { return io.Discard })
	must(t, err)
	defer s.close()
	if text, err := io.ReadAll(s.io.Stdin); err != nil || len(text) != 0 || s.input != nil {
		t.Errorf("%q, %v", text, err)
	}
	s.closeInput() // there is no stdin: it does nothing
}

func TestTerminal(t *testing.T) {
	t.Parallel()
	out := &collected{}
	s, err := openStreams(true, true, func(string) io.Writer { return out })
	must(t, err)
	must(t, s.resize(api.SessionSize{Rows: 33, Columns: 77}))
	_, err = s.io.Stdout.Write([]byte("drawn"))
	must(t, err)
	s.close()
	if out.text.String() != "drawn" {
		t.Errorf("%q", out.text.String())
	}
}

// A listener that does not read loses pieces and gets their size; one that reads loses none,
// and no writer waits.
func TestHubNeverWaits(t *testing.T) {
	t.Parallel()
	h := newHub()
	slow, quick := h.join(), h.join()
	const many = queued * 3
	for range many {
		h.say(stdout, []byte("0123456789"))
		<-quick.pieces
	}
	for range queued {
		if piece := <-slow.pieces; piece.Lost != 0 {
			t.Fatalf("lost %d before it was full", piece.Lost)
		}
	}
	h.say(stdout, []byte("after"))
	if piece := <-slow.pieces; piece.Lost != (many-queued)*10 || string(piece.Data) != "after" {
		t.Errorf("%+v", piece)
	}
	h.leave(slow)
	h.say(stdout, []byte("x"))
	if piece := <-quick.pieces; piece.Lost != 0 {
		t.Errorf("%+v", piece)
	}
	<-quick.pieces
	h.close()
	if _, more := <-quick.pieces; more {
		t.Error("it goes on behind its end")
	}
	if _, more := <-h.join().pieces; more {
		t.Error("a late caller waits")
	}
}

func TestOrder(t *testing.T) {
	t.Parallel()
	read := func(text string) (Order, error) {
		r, w, err := os.Pipe()
		must(t, err)
		_, err = w.WriteString(text)
		must(t, err)
		must(t, w.Close())
		return ReadOrder(r)
	}
	sent := Order{Spec: agent.Spec{ID: agent.NewID(), Name: "n"}, LogDir: "/x", LogCapBytes: 7}
	text, err := json.Marshal(sent)
	must(t, err)
	if got, err := read(string(text)); err != nil || got.Spec.ID != sent.Spec.ID || got.LogDir != "/x" || got.LogCapBytes != 7 {
		t.Errorf("%+v, %v", got, err)
	}
	for _, bad := range []string{"", "{", `{"spec":{"id":"../x"}}`, "[]"} {
		if _, err := read(bad); agent.KindOf(err) != agent.KindInvalid || err == nil {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// The log and attached callers get the same bytes.
func TestLogAndHub(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l, err := logs.Open(filepath.Join(dir, "log"), 64<<20)
	must(t, err)
	defer l.Close()
	h := newHub()
	listener := h.join()
	_, err = logAndHub(l.Stream(stdout), h, stdout).Write([]byte("both\n"))
	must(t, err)
	if piece := <-listener.pieces; string(piece.Data) != "both\n" || piece.Stream != stdout {
		t.Errorf("%+v", piece)
	}
	text, err := os.ReadFile(filepath.Join(dir, "log", "log"))
	if err != nil || !strings.Contains(string(text), `"text":"both"`) {
		t.Errorf("%s, %v", text, err)
	}
}

// A foreground run, or a run that does not exist, has no supervisor to connect to.
func TestConnectToNobody(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if _, err := Connect(t.Context(), dir, "0123456789abcdef"); agent.KindOf(err) != agent.KindConflict || err == nil {
		t.Errorf("%v", err)
	}
}

// A supervisor that is late is waited for, also while its socket has a name and no process
// listens on it yet. No event reports the end of that state.
func TestConnectWaitsForALateSupervisor(t *testing.T) {
	t.Parallel()
	for _, bound := range []bool{false, true} {
		dir := t.TempDir()
		path := filepath.Join(dir, string(someID), SocketName)
		must(t, os.Mkdir(filepath.Dir(path), 0o700))
		fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		must(t, err)
		defer unix.Close(fd)
		if bound {
			must(t, unix.Bind(fd, &unix.SockaddrUnix{Name: path}))
		}
		reached := make(chan error, 1)
		go func() {
			conn, err := Connect(t.Context(), dir, someID)
			if err == nil {
				conn.Close()
			}
			reached <- err
		}()
		if !bound {
			must(t, unix.Bind(fd, &unix.SockaddrUnix{Name: path}))
		}
		time.AfterFunc(2*askAgain, func() { _ = unix.Listen(fd, 8) }) // late enough that a connection was refused
		must(t, <-reached)
	}
}

// If a run ends while a caller waits for its supervisor, the wait ends.
func TestConnectSeesTheEnd(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	run := filepath.Join(dir, string(someID))
	must(t, os.Mkdir(run, 0o700))
	reached := make(chan error, 1)
	go func() { _, err := Connect(t.Context(), dir, someID); reached <- err }()
	must(t, os.Remove(run))
	began := time.Now()
	if err := <-reached; agent.KindOf(err) != agent.KindConflict || time.Since(began) >= patience {
		t.Errorf("%v", err)
	}
}

// If an agent does not read its input, a caller that has gone is not held, and the next
// caller's input arrives when the agent reads.
func TestInputThatNobodyReads(t *testing.T) {
	t.Parallel()
	for _, terminal := range []bool{false, true} {
		s, err := openStreams(terminal, true, func(string) io.Writer { return io.Discard })
		must(t, err)
		full := bytes.Repeat([]byte("x"), 1<<20) // larger than a pipe or a pty
		ctx, leave := context.WithCancel(t.Context())
		gone := make(chan struct{})
		go func() { s.give(ctx, full); close(gone) }()
		waiting := make(chan struct{})
		second, leaveToo := context.WithCancel(t.Context())
		go func() { s.give(second, full); close(waiting) }()
		leaveToo()
		leave()
		<-gone
		<-waiting
		if !terminal {
			read := make(chan []byte, 1)
			go func() { text, _ := io.ReadAll(s.io.Stdin); read <- text }()
			s.give(t.Context(), []byte("typed"))
			s.closeInput()
			if text := <-read; !bytes.HasSuffix(text, []byte("typed")) {
				t.Errorf("%d bytes, and not the last ones", len(text))
			}
		}
		s.close()
	}
}

// Input from before the run has a terminal is kept unchanged, the end-of-file character too:
// the agent's own terminal interprets it.
func TestTerminalIsRawFromTheBeginning(t *testing.T) {
	t.Parallel()
	s, err := openStreams(true, true, func(string) io.Writer { return io.Discard })
	must(t, err)
	defer s.close()
	s.give(t.Context(), []byte("a\r"))
	s.closeInput()
	got := make([]byte, 3)
	if _, err := io.ReadFull(s.io.Stdin, got); err != nil || string(got) != "a\r\x04" {
		t.Errorf("%q, %v", got, err)
	}
}

// A terminal without stdin has no input.
func TestTerminalWithoutStdin(t *testing.T) {
	t.Parallel()
	s, err := openStreams(true, false, func(string) io.Writer { return io.Discard })
	must(t, err)
	defer s.close()
	if s.input != nil || s.master == nil {
		t.Errorf("%+v", s)
	}
}

// When a caller leaves, its relay ends, in whatever order the caller and the agent end.
func TestLeavingEndsTheRelay(t *testing.T) {
	t.Parallel()
	h := newHub()
	left, ended := h.join(), h.join()
	h.say(stdout, []byte("last"))
	h.leave(left)
	h.leave(left)
	h.close()
	h.leave(ended)
	for _, l := range []*listener{left, ended} {
		if piece, more := <-l.pieces; !more || string(piece.Data) != "last" {
			t.Errorf("%+v, %v", piece, more)
		}
		if _, more := <-l.pieces; more {
			t.Error("it goes on")
		}
	}
}
