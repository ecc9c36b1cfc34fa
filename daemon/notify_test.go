package daemon

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// manager is the service manager's end of NOTIFY_SOCKET.
func manager(t *testing.T, name string) (read func() string) {
	t.Helper()
	address := name
	if name[0] == '@' {
		address = "\x00" + name[1:]
	}
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: address, Net: "unixgram"})
	must(t, err)
	t.Cleanup(func() { conn.Close() })
	must(t, conn.SetReadDeadline(time.Now().Add(patience)))
	return func() string {
		t.Helper()
		buffer := make([]byte, 1024)
		n, err := conn.Read(buffer)
		must(t, err)
		return string(buffer[:n])
	}
}

func TestNotifier(t *testing.T) {
	for _, name := range []string{filepath.Join(t.TempDir(), "notify"), "@clove-test-" + strconv.Itoa(os.Getpid())} {
		read := manager(t, name)
		t.Setenv("NOTIFY_SOCKET", name)
		n := NewNotifier()
		if os.Getenv("NOTIFY_SOCKET") != "" {
			t.Error("a process that cloved starts has the socket in its environment")
		}
		n.Ready("serves\nall")
		if got := read(); got != "READY=1\nSTATUS=serves all" {
			t.Errorf("%q", got)
		}
		n.Reloading()
		if got := read(); !regexp.MustCompile(`^RELOADING=1\nMONOTONIC_USEC=[1-9][0-9]*$`).MatchString(got) {
			t.Errorf("%q", got)
		}
		n.Send(NotifyStopping)
		if got := read(); got != "STOPPING=1" {
			t.Errorf("%q", got)
		}
	}
}

// Without a service manager, or after its end, a notification does nothing.
func TestNotifierAlone(t *testing.T) {
	t.Setenv("NOTIFY_SOCKET", "")
	NewNotifier().Ready("x")
	t.Setenv("NOTIFY_SOCKET", filepath.Join(t.TempDir(), "gone"))
	NewNotifier().Ready("x")
}

// If the service manager's queue is full, cloved waits only for a limited time. The control is
// a service manager that reads.
func TestNotifierDoesNotHang(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "notify")
	read := manager(t, path)
	for fill(t, path) > 0 { // the sender's own buffer may be full before the queue is
	}
	n := Notifier{path: path, patience: 10 * time.Millisecond}
	n.Send("lost")
	for range 2 {
		read()
	}
	n.patience = patience
	n.Send("heard")
	for got := read(); got != "heard"; got = read() {
		if got == "lost" {
			t.Error("control: the queue was not full")
		}
	}
}

// fill sends datagrams from one socket until the queue is full.
func fill(t *testing.T, path string) (sent int) {
	t.Helper()
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	must(t, err)
	defer unix.Close(fd)
	for ; ; sent++ {
		err := unix.Sendto(fd, []byte("filling"), 0, &unix.SockaddrUnix{Name: path})
		if err == unix.EAGAIN {
			return sent
		}
		must(t, err)
	}
}

func TestWatchdogIsOurs(t *testing.T) {
	own := strconv.Itoa(os.Getpid())
	for _, c := range []struct {
		usec, pid string
		want      time.Duration
	}{
		{"3000000", own, 3 * time.Second}, {"3000000", "", 3 * time.Second}, {"3000000", "1", 0},
		{"", own, 0}, {"-1", own, 0}, {"soon", own, 0},
	} {
		t.Setenv("WATCHDOG_USEC", c.usec)
		t.Setenv("WATCHDOG_PID", c.pid)
		if n := NewNotifier(); n.watchdog != c.want || os.Getenv("WATCHDOG_USEC") != "" {
			t.Errorf("%+v: %v", c, n.watchdog)
		}
	}
}

// The watchdog is notified while cloved works, and not while it hangs.
func TestFeed(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "notify")
	read := manager(t, path)
	n := Notifier{path: path, watchdog: 20 * time.Millisecond, patience: time.Second}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	var sick atomic.Bool
	sick.Store(true)
	failed, done := make(chan error, 1000), make(chan struct{})
	go func() {
		defer close(done)
		n.Feed(ctx, func(ctx context.Context) error {
			if sick.Load() {
				<-ctx.Done() // as one that hangs
				return errors.New("it hangs")
			}
			return nil
		}, func(err error) { failed <- err })
	}()
	if err := <-failed; err == nil || err.Error() != "it hangs" {
		t.Errorf("%v", err)
	}
	n.Send("nothing before") // the first notification that the manager gets
	sick.Store(false)
	if got := read(); got != "nothing before" {
		t.Errorf("%q", got)
	}
	if got := read(); got != notifyWatchdog {
		t.Errorf("%q", got)
	}
	stop()
	<-done
	Notifier{}.Feed(context.Background(), nil, nil) // without a watchdog it returns
}
