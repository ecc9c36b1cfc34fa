package initproto

import (
	"errors"
	"io"
	"os"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// pair returns both sides as connections; they are closed with the test.
func pair(t *testing.T) (supervisor, init *Conn) {
	t.Helper()
	supervisor, file, err := Pair()
	if err != nil {
		t.Fatal(err)
	}
	init, err = NewConn(duplicate(t, file))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { supervisor.Close(); init.Close() })
	return supervisor, init
}

// duplicate returns a descriptor that only its receiver owns, and closes file.
func duplicate(t *testing.T, file *os.File) int {
	t.Helper()
	fd, err := unix.Dup(int(file.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	file.Close()
	return fd
}

// rawPair returns one side as a bare descriptor, for a peer that violates the protocol.
func rawPair(t *testing.T) (*Conn, int) {
	t.Helper()
	conn, file, err := Pair()
	if err != nil {
		t.Fatal(err)
	}
	fd := duplicate(t, file)
	t.Cleanup(func() { conn.Close(); unix.Close(fd) })
	return conn, fd
}

// TestLargeOrders needs many reads and writes, because they fit into no socket buffer.
func TestLargeOrders(t *testing.T) {
	t.Parallel()
	supervisor, init := pair(t)
	want := &Orders{Argv: Strings{"sh"}, Env: Strings{strings.Repeat("é\xff", 1<<20)}, Dir: "/"}
	sent := make(chan error, 1)
	go func() { sent <- supervisor.Send(Message{Orders: want}) }()
	got, err := init.Receive()
	if err != nil {
		t.Fatal(err)
	}
	if err := <-sent; err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got.Orders, want) {
		t.Error("orders changed on their way")
	}
}

func TestTerminalTravels(t *testing.T) {
	t.Parallel()
	supervisor, init := pair(t)
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	if err := init.Send(Message{Started: &Started{PID: 2, Terminal: write}}); err != nil {
		t.Fatal(err)
	}
	write.Close()
	m, err := supervisor.Receive()
	if err != nil || m.Started == nil || m.Started.Terminal == nil {
		t.Fatalf("got %+v, %v", m, err)
	}
	if flags, err := unix.FcntlInt(m.Started.Terminal.Fd(), unix.F_GETFD, 0); err != nil || flags&unix.FD_CLOEXEC == 0 {
		t.Error("the next child would inherit the terminal")
	}
	if _, err := m.Started.Terminal.WriteString("x"); err != nil {
		t.Fatal(err)
	}
	m.Started.Terminal.Close()
	if text, err := io.ReadAll(read); string(text) != "x" || err != nil {
		t.Errorf("read %q, %v", text, err)
	}
}

func TestDescriptorsInTheWrongPlace(t *testing.T) {
	t.Parallel()
	stop := "\x00\x00\x00\x18" + `{"stop":{"grace_ns":10}}`
	started := "\x00\x00\x00\x26" + `{"started":{"pid":2,"boot_time_ns":1}}`
	for name, c := range map[string]struct {
		frame string
		fds   int
	}{"with a command": {stop, 1}, "two at once": {started, 2}, "more than fit": {started, 9}} {
		conn, peer := rawPair(t)
		read, write, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		fds := make([]int, c.fds)
		for i := range fds {
			fds[i] = int(write.Fd())
		}
		if err := unix.Sendmsg(peer, []byte(c.frame), unix.UnixRights(fds...), nil, 0); err != nil {
			t.Fatal(err)
		}
		write.Close()
		if m, err := conn.Receive(); err == nil {
			t.Errorf("%s: received %+v", name, m)
		}
		// The pipe ends when no copy of its write end is left.
		if text, err := io.ReadAll(read); len(text) != 0 || err != nil {
			t.Errorf("%s: %q, %v", name, text, err)
		}
		read.Close()
	}
	// The control: the same frames without descriptors are accepted.
	for _, frame := range []string{stop, started} {
		conn, peer := rawPair(t)
		if _, err := unix.Write(peer, []byte(frame)); err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Receive(); err != nil {
			t.Error(err)
		}
	}
}

func TestBrokenFrames(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		bytes string
		want  error // nil: any
	}{
		"nothing":     {"", io.EOF},
		"half header": {"\x00\x00", io.ErrUnexpectedEOF},
		"no body":     {"\x00\x00\x00\x05", io.ErrUnexpectedEOF},
		"half body":   {"\x00\x00\x00\x05{}", io.ErrUnexpectedEOF},
		"too long":    {"\xff\xff\xff\xff", nil},
		"empty":       {"\x00\x00\x00\x00", nil},
		"not JSON":    {"\x00\x00\x00\x02xx", nil},
	} {
		conn, peer := rawPair(t)
		if _, err := unix.Write(peer, []byte(c.bytes)); err != nil {
			t.Fatal(err)
		}
		if err := unix.Shutdown(peer, unix.SHUT_WR); err != nil {
			t.Fatal(err)
		}
		m, err := conn.Receive()
		if err == nil || (c.want != nil && !errors.Is(err, c.want)) {
			t.Errorf("%s: %+v, %v; want %v", name, m, err, c.want)
		}
		if name != "nothing" && err == io.EOF {
			t.Errorf("%s: taken for a clean end", name)
		}
	}
}

// TestSlowPeer: a frame that arrives byte by byte is complete in the end.
func TestSlowPeer(t *testing.T) {
	t.Parallel()
	conn, peer := rawPair(t)
	for _, b := range []byte("\x00\x00\x00\x18" + `{"stop":{"grace_ns":10}}`) {
		if _, err := unix.Write(peer, []byte{b}); err != nil {
			t.Fatal(err)
		}
	}
	if m, err := conn.Receive(); err != nil || m.Stop == nil {
		t.Errorf("got %+v, %v", m, err)
	}
}

// TestCloseWithUnreadBytes: the kernel then reports ECONNRESET, which counts as an end, and
// what the peer sent before still arrives.
func TestCloseWithUnreadBytes(t *testing.T) {
	t.Parallel()
	supervisor, init := pair(t)
	if err := supervisor.Send(Message{Stop: &Stop{}}); err != nil {
		t.Fatal(err)
	}
	if err := init.Send(Message{Exited: &Exited{}}); err != nil {
		t.Fatal(err)
	}
	init.Close()
	if m, err := supervisor.Receive(); err != nil || m.Exited == nil {
		t.Errorf("last message: %+v, %v", m, err)
	}
	if _, err := supervisor.Receive(); err != io.EOF {
		t.Errorf("end: %v", err)
	}
	if err := supervisor.Send(Message{Stop: &Stop{}}); !errors.Is(err, unix.EPIPE) {
		t.Errorf("send: %v", err)
	}
}

func TestDeadlines(t *testing.T) {
	t.Parallel()
	supervisor, init := pair(t)
	past := time.Now().Add(-time.Second)
	if err := supervisor.SetReceiveDeadline(past); err != nil {
		t.Fatal(err)
	}
	if _, err := supervisor.Receive(); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("receive: %v", err)
	}
	// A receive deadline that has passed without a message has no further effect.
	if err := errors.Join(supervisor.SetReceiveDeadline(time.Time{}), init.Send(Message{Signal: &Signal{2}})); err != nil {
		t.Fatal(err)
	}
	if m, err := supervisor.Receive(); err != nil || m.Signal == nil {
		t.Errorf("got %+v, %v", m, err)
	}
}

// TestSendWithin: if the time limit is over before the first attempt, as on a busy host, no
// message is lost while the socket has room. The control is a full socket.
func TestSendWithin(t *testing.T) {
	t.Parallel()
	supervisor, init := pair(t)
	sent := 0
	for {
		err := supervisor.SendWithin(time.Nanosecond, Message{Signal: &Signal{2}})
		if errors.Is(err, os.ErrDeadlineExceeded) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		sent++
	}
	if sent < 100 {
		t.Errorf("only %d messages had room", sent)
	}
	for range sent {
		if m, err := init.Receive(); err != nil || m.Signal == nil {
			t.Fatalf("got %+v, %v", m, err)
		}
	}
	if err := supervisor.SendWithin(time.Nanosecond, Message{Stop: &Stop{}}); err != nil {
		t.Errorf("after the receiver has read: %v", err)
	}
}

// TestCloseSend: earlier messages still arrive, then the end; the other direction stays open.
func TestCloseSend(t *testing.T) {
	t.Parallel()
	supervisor, init := pair(t)
	if err := errors.Join(supervisor.Send(Message{Stop: &Stop{}}), supervisor.CloseSend()); err != nil {
		t.Fatal(err)
	}
	if m, err := init.Receive(); err != nil || m.Stop == nil {
		t.Errorf("got %+v, %v", m, err)
	}
	if _, err := init.Receive(); err != io.EOF {
		t.Errorf("end: %v", err)
	}
	if err := init.Send(Message{Exited: &Exited{}}); err != nil {
		t.Error(err)
	}
	if m, err := supervisor.Receive(); err != nil || m.Exited == nil {
		t.Errorf("got %+v, %v", m, err)
	}
	supervisor.Close()
	if err := supervisor.CloseSend(); err == nil {
		t.Error("ended the messages of a closed connection")
	}
}

func TestCloseEndsReceive(t *testing.T) {
	t.Parallel()
	supervisor, _ := pair(t)
	ended := make(chan error, 1)
	go func() { _, err := supervisor.Receive(); ended <- err }()
	supervisor.Close()
	if err := <-ended; err == nil {
		t.Error("received from a closed connection")
	}
}

// TestManySenders: concurrent frames are not mixed, also when each needs many writes.
func TestManySenders(t *testing.T) {
	t.Parallel()
	supervisor, init := pair(t)
	const senders = 8
	var group sync.WaitGroup
	for n := range senders {
		group.Go(func() {
			text := strings.Repeat(string(rune('a'+n)), 300<<10)
			if err := supervisor.Send(Message{Orders: &Orders{Argv: Strings{text}}}); err != nil {
				t.Error(err)
			}
		})
	}
	for range senders {
		m, err := init.Receive()
		if err != nil {
			t.Fatal(err)
		}
		if text := m.Orders.Argv[0]; strings.Trim(text, text[:1]) != "" {
			t.Error("frames are mixed")
		}
	}
	group.Wait()
}

func TestNewConnOwnsItsDescriptor(t *testing.T) {
	t.Parallel()
	if conn, err := NewConn(-1); err == nil {
		t.Errorf("took descriptor -1: %v", conn)
	}
}
