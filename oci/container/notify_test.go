package container

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// manager is a service manager's socket.
func manager(t *testing.T) (*net.UnixConn, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "manager")
	socket, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { socket.Close() })
	if err := socket.SetReadDeadline(time.Now().Add(killPatience)); err != nil {
		t.Fatal(err)
	}
	return socket, path
}

// heard returns the next message and closes its descriptors, as systemd does.
func heard(t *testing.T, socket *net.UnixConn) string {
	t.Helper()
	text, rights := make([]byte, 4096), make([]byte, 4096)
	n, m, _, _, err := socket.ReadMsgUnix(text, rights)
	if err != nil {
		t.Fatal(err)
	}
	messages, err := unix.ParseSocketControlMessage(rights[:m])
	if err != nil {
		t.Fatal(err)
	}
	for i := range messages {
		fds, err := unix.ParseUnixRights(&messages[i])
		if err != nil {
			t.Fatal(err)
		}
		for _, fd := range fds {
			unix.Close(fd)
		}
	}
	return string(text[:n])
}

func TestOnlyReadinessIsHandedOn(t *testing.T) {
	host, path := manager(t)
	e := Engine{Root: t.TempDir()}
	n := e.notifyOf("one", path)
	if err := n.listen(); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("without its directory: %v", err)
	}
	if err := os.MkdirAll(n.directory, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := n.listen(); err != nil {
		t.Fatal(err)
	}
	defer n.close()
	inside, err := net.Dial("unixgram", filepath.Join(n.directory, notifySocketName))
	if err != nil {
		t.Fatal(err)
	}
	defer inside.Close()
	ended := make(chan error, 1)
	go func() { ended <- n.forward(42) }()
	for _, message := range []string{"STATUS=soon", "MAINPID=1\nREADY=1\nX=1"} {
		if _, err := inside.Write([]byte(message)); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []string{"READY=1\n", "MAINPID=42\n", "BARRIER=1"} {
		if got := heard(t, host); got != want {
			t.Errorf("the manager heard %q, not %q", got, want)
		}
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestAnEndOfTheProcessEndsTheWaiting: for a notification that cannot come any more.
func TestAnEndOfTheProcessEndsTheWaiting(t *testing.T) {
	_, path := manager(t)
	e := Engine{Root: t.TempDir()}
	process := child(t)
	kept(t, e, "one", process.Process.Pid)
	c := load(t, e, "one")
	n := e.notifyOf("one", path)
	if err := os.Mkdir(n.directory, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := n.listen(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- n.await(c) }()
	if err := process.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestNobodyWhoWantsToHearChangesNothing(t *testing.T) {
	if n := (Engine{Root: "/r"}).notifyOf("one", ""); n != nil {
		t.Errorf("%+v", n)
	}
	spec := &specs.Spec{Process: &specs.Process{}}
	Engine{Root: "/r"}.notifyOf("one", "@manager").mount(spec)
	if m := spec.Mounts[0]; m.Source != "/r/one/notify" || m.Destination != "/run/notify" || !strings.Contains(strings.Join(m.Options, " "), "ro") {
		t.Errorf("%+v", m)
	}
	if got := spec.Process.Env[0]; got != "NOTIFY_SOCKET=/run/notify/notify.sock" {
		t.Error(got)
	}
}
