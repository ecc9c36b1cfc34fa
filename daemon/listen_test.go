package daemon

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
)

// listening makes a listening socket as a service manager does.
func listening(t *testing.T, path string) *os.File {
	t.Helper()
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	must(t, err)
	listener.SetUnlinkOnClose(false)
	defer listener.Close()
	file, err := listener.File()
	must(t, err)
	return file
}

func TestInherit(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "s")
	listener, err := inherit([]*os.File{listening(t, path)}, path)
	must(t, err)
	if conn, err := net.Dial("unix", path); err != nil {
		t.Error(err)
	} else {
		conn.Close()
	}
	// The socket belongs to the service manager: it stays for the next cloved.
	must(t, listener.Close())
	if _, err := os.Stat(path); err != nil {
		t.Errorf("the socket is gone: %v", err)
	}
	if listener, err := inherit(nil, path); listener != nil || err != nil {
		t.Errorf("nothing was handed over: %v, %v", listener, err)
	}
}

func TestInheritRefuses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	regular, err := os.Create(filepath.Join(dir, "file"))
	must(t, err)
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer tcp.Close()
	tcpFile, err := tcp.(*net.TCPListener).File()
	must(t, err)
	for _, c := range []struct {
		name   string
		handed []*os.File
		want   string
	}{
		{"two", []*os.File{listening(t, filepath.Join(dir, "a")), listening(t, filepath.Join(dir, "b"))}, "2 sockets"},
		{"a file", []*os.File{regular}, "no listening socket"},
		{"a port", []*os.File{tcpFile}, "127.0.0.1"},
		{"another path", []*os.File{listening(t, filepath.Join(dir, "c"))}, "names " + filepath.Join(dir, "s")},
	} {
		listener, err := inherit(c.handed, filepath.Join(dir, "s"))
		if listener != nil || err == nil || !strings.Contains(err.Error(), c.want) || agent.FailureOf(err).Hint == "" {
			t.Errorf("%s: %v, %v", c.name, listener, err)
		}
		for _, file := range c.handed {
			if file.Close() == nil {
				t.Errorf("%s: a descriptor is left open", c.name)
			}
		}
	}
}

// The real protocol: descriptor 3, and the variables name this process. Variables for another
// process are ignored.
func TestListenTakesWhatSystemdHands(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "s")
	file := listening(t, path)
	defer file.Close()
	before, err := os.Stat(path)
	must(t, err)
	for pid, want := range map[string]string{"$$": "inherited", "1": "served by another process"} {
		// The shell executes the test, so the pid stays the same.
		cmd := exec.Command("sh", "-c", "LISTEN_PID="+pid+` exec "$0" -test.run='^TestListenChild$' -test.v`, os.Args[0])
		cmd.Env = append(os.Environ(), "LISTEN_FDS=1", "CLOVE_TEST_LISTEN="+path)
		cmd.ExtraFiles = []*os.File{file}
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(out), want) {
			t.Errorf("LISTEN_PID=%s: %v\n%s", pid, err, out)
		}
	}
	if after, err := os.Stat(path); err != nil || !os.SameFile(before, after) {
		t.Errorf("the socket is another: %v", err)
	}
}

// TestListenChild is the second process of TestListenTakesWhatSystemdHands; by itself it does
// nothing.
func TestListenChild(t *testing.T) {
	t.Parallel()
	path := os.Getenv("CLOVE_TEST_LISTEN")
	if path == "" {
		return
	}
	listener, _, err := Listen(path, "")
	if err != nil {
		t.Log(err)
		return
	}
	defer listener.Close()
	if os.Getenv("LISTEN_FDS") != "" {
		t.Error("the variables go on to what cloved starts")
	}
	t.Log("inherited", listener.Addr())
}

// A socket that no process serves is replaced; anything else is left.
func TestMakeSocket(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Log("as root it is also root's; here its owner cannot be set")
	}
	dir := filepath.Join(t.TempDir(), "made")
	path := filepath.Join(dir, "s")
	listening := func() (*net.UnixListener, error) { return makeSocket(path, os.Getegid()) }
	if os.Geteuid() != 0 {
		if _, err := listening(); err == nil {
			t.Error("a socket that is not root's is served")
		}
		return
	}
	first, err := listening()
	must(t, err)
	info, err := os.Stat(path)
	must(t, err)
	if info.Mode().Perm() != 0o660 {
		t.Errorf("its mode is %v", info.Mode())
	}
	if _, err := listening(); agent.KindOf(err) != agent.KindBusy {
		t.Errorf("one that is served is replaced: %v", err)
	}
	first.SetUnlinkOnClose(false)
	must(t, first.Close()) // as a kill -9 leaves it
	// A program that a test beside this one starts has a copy of the socket, between fork and exec.
	second, err := listening()
	for deadline := time.Now().Add(patience); err != nil && time.Now().Before(deadline); second, err = listening() {
		time.Sleep(time.Millisecond)
	}
	must(t, err)
	must(t, second.Close())
	must(t, os.WriteFile(path, nil, 0o600))
	if _, err := listening(); agent.KindOf(err) != agent.KindBusy {
		t.Errorf("a file is replaced: %v", err)
	}
}

// A cloved that was killed while it started a child leaves a copy of its listening socket in
// the child, which still accepts connections.
func TestACopyOfTheSocketServesNobody(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "s")
	reader, writer, err := os.Pipe()
	must(t, err)
	defer reader.Close()
	defer writer.Close() // the child's end
	killed := exec.Command("python3", "-c", `
import os, socket, sys
s = socket.socket(socket.AF_UNIX); s.bind(sys.argv[1]); s.listen()
if not os.fork(): sys.stdin.read()`, path)
	killed.Stdin = reader
	must(t, killed.Run())
	conn, err := net.Dial("unix", path)
	if err != nil {
		t.Fatalf("control: there is no copy: %v", err)
	}
	conn.Close()
	must(t, freePath(path))
	if _, err := os.Lstat(path); err == nil {
		t.Error("it is still there")
	}
}

func TestLockIsForOne(t *testing.T) {
	t.Parallel()
	state := filepath.Join(t.TempDir(), "state")
	first, err := Lock(state)
	must(t, err)
	_, err = Lock(state)
	if agent.KindOf(err) != agent.KindBusy || !strings.Contains(err.Error(), "another cloved") {
		t.Errorf("%v", err)
	}
	must(t, first.Close())
	second, err := Lock(state)
	must(t, err)
	must(t, second.Close())
	// A link at the place of the lock file is not followed.
	must(t, os.Remove(filepath.Join(state, lockName)))
	must(t, unix.Symlink("/dev/null", filepath.Join(state, lockName)))
	if _, err := Lock(state); err == nil {
		t.Error("it follows a link")
	}
}

func TestGroupID(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]int{"": -1, "root": 0, "no-such-group-here": -1} {
		if got, err := groupID(name); got != want || err != nil {
			t.Errorf("%q: %d, %v", name, got, err)
		}
	}
}

// A child that a dying cloved was starting may hold its lock for a moment longer. The control
// is a cloved that is alive.
func TestLockWaitsAMoment(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first, err := Lock(dir)
	must(t, err)
	_, err = Lock(dir)
	if agent.KindOf(err) != agent.KindBusy {
		t.Fatalf("control: %v", err)
	}
	time.AfterFunc(lockPatience/10, func() { first.Close() })
	second, err := Lock(dir)
	must(t, err)
	second.Close()
}
