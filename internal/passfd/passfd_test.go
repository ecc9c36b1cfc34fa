package passfd

import (
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// pair is both sides of a connection, closed with the test.
func pair(t *testing.T, kind int) (ours, theirs *os.File) {
	t.Helper()
	ours, file, err := Pair(kind)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ours.Close() })
	fd, err := unix.Dup(int(file.Fd()))
	file.Close()
	if err == nil {
		theirs, err = New(fd)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { theirs.Close() })
	return ours, theirs
}

// A received descriptor is the same open file, and the sender's own stays open. If too many
// came, all are closed: the pipe ends.
func TestDescriptorsTravel(t *testing.T) {
	t.Parallel()
	for _, kind := range []int{unix.SOCK_STREAM, unix.SOCK_SEQPACKET} {
		for sent, good := range map[int]bool{0: true, 1: true, 2: true, 3: false, 9: false} {
			ours, theirs := pair(t, kind)
			read, write, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			if n, err := Send(ours, []byte("text"), slices.Repeat([]*os.File{write}, sent)...); n != 4 || err != nil {
				t.Fatalf("%d files: %d, %v", sent, n, err)
			}
			if _, err := write.WriteString("ours,"); err != nil {
				t.Errorf("the sender's own: %v", err)
			}
			write.Close()
			data := make([]byte, 9)
			n, fds, err := Receive(theirs, data, 2)
			if (err == nil) != good || good && (string(data[:n]) != "text" || len(fds) != sent) {
				t.Errorf("%d files: %q, %v, %v", sent, data[:n], fds, err)
			}
			for _, fd := range fds {
				if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err != nil || flags&unix.FD_CLOEXEC == 0 {
					t.Errorf("it would be inherited: %#x, %v", flags, err)
				}
				if _, err := unix.Write(fd, []byte("theirs,")); err != nil {
					t.Error(err)
				}
				unix.Close(fd)
			}
			want := "ours," + strings.Repeat("theirs,", len(fds))
			if text, err := io.ReadAll(read); err != nil || string(text) != want {
				t.Errorf("%d files: %q, %v, want %q", sent, text, err, want)
			}
			read.Close()
		}
	}
}

func TestAPacketThatDoesNotFitIsRefused(t *testing.T) {
	t.Parallel()
	for kind, fits := range map[int]bool{unix.SOCK_SEQPACKET: false, unix.SOCK_STREAM: true} { // the stream is the control
		ours, theirs := pair(t, kind)
		if _, err := Send(ours, []byte("text")); err != nil {
			t.Fatal(err)
		}
		if n, _, err := Receive(theirs, make([]byte, 3), 0); (err == nil) != fits {
			t.Errorf("%d bytes, %v", n, err)
		}
	}
}

func TestEachEndHasItsError(t *testing.T) {
	t.Parallel()
	ours, theirs := pair(t, unix.SOCK_STREAM)
	if err := ours.SetReadDeadline(time.Now()); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Receive(ours, make([]byte, 1), 0); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a deadline: %v", err)
	}
	if err := CloseSend(ours); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Receive(theirs, make([]byte, 1), 0); err != io.EOF {
		t.Errorf("the other side says no more: %v", err)
	}
	received := make(chan error)
	go func() { _, _, err := Receive(theirs, make([]byte, 1), 0); received <- err }()
	theirs.Close()
	if err := <-received; err != os.ErrClosed && err != io.EOF { // whichever it saw first
		t.Errorf("this side is closed: %v", err)
	}
	if _, _, err := Receive(theirs, make([]byte, 1), 0); err != os.ErrClosed {
		t.Errorf("this side was closed: %v", err)
	}
	if _, err := Send(ours, []byte("x")); !errors.Is(err, unix.EPIPE) {
		t.Errorf("the other end is closed: %v", err)
	}
	if _, err := New(-1); err == nil {
		t.Error("descriptor -1 is a socket")
	}
}
