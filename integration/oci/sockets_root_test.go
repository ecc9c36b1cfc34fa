//go:build root

package oci

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// read returns everything that comes out of a terminal's master, up to its end.
func read(t *testing.T, master *os.File) string {
	t.Helper()
	var all bytes.Buffer
	_, err := io.Copy(&all, master)
	if err != nil && !strings.Contains(err.Error(), "input/output error") { // a terminal that no process has open
		t.Error(err)
	}
	return all.String()
}

// TestTheEngineGetsTheTerminal: it gets that of the first process and those of later ones.
func TestTheEngineGetsTheTerminal(t *testing.T) {
	r := newRuntime(t)
	path, listener := listen(t, r, "unix", "console")
	bundle := r.Bundle("tty; stty size", func(s *specs.Spec) {
		s.Process.Terminal, s.Process.ConsoleSize = true, &specs.Box{Height: 11, Width: 22}
	})
	r.Must("create", "--bundle", bundle, "--console-socket", path, "one")
	master := received(t, listener)
	r.Must("start", "one")
	if got := read(t, master); got != "/dev/pts/0\r\n11 22\r\n" {
		t.Errorf("create: %q", got)
	}
	master.Close()
	r.Must("delete", "--force", "one")

	id := waiting(t, r)
	r.Must("exec", "--tty", "--detach", "--console-socket", path, id, "sh", "-c", "tty; read line; echo got $line")
	master = received(t, listener)
	defer master.Close()
	if got := readUntil(master, "\n"); got != "/dev/pts/0\r\n" {
		t.Errorf("exec: %q", got)
	}
	if _, err := master.WriteString("this\n"); err != nil { // now its echo is not mixed with other output
		t.Fatal(err)
	}
	if got := read(t, master); got != "this\r\ngot this\r\n" {
		t.Errorf("exec: %q", got)
	}
}

// TestTheEngineGetsAPidfd: it belongs to the process.
func TestTheEngineGetsAPidfd(t *testing.T) {
	r := newRuntime(t)
	path, listener := listen(t, r, "unix", "pidfd")
	pidOf := func(pidfd *os.File) string {
		text, err := os.ReadFile("/proc/self/fdinfo/" + strconv.Itoa(int(pidfd.Fd())))
		if err != nil {
			t.Fatal(err)
		}
		_, pid, _ := strings.Cut(string(text), "\nPid:\t")
		pid, _, _ = strings.Cut(pid, "\n")
		return pid
	}
	r.Must("run", "--detach", "--bundle", r.Bundle("exec sleep 1000"), "--pidfd-socket", path, "one")
	first := received(t, listener)
	defer first.Close()
	if got, want := pidOf(first), strconv.Itoa(r.State("one").Pid); got != want {
		t.Errorf("run: the pidfd is of %s, not %s", got, want)
	}
	pidFile := filepath.Join(r.Directory(), "pid")
	r.Must("exec", "--detach", "--pid-file", pidFile, "--pidfd-socket", path, "one", "sleep", "1000")
	second := received(t, listener)
	defer second.Close()
	if want, _ := os.ReadFile(pidFile); pidOf(second) != string(want) {
		t.Errorf("exec: the pidfd is of %s, not %s", pidOf(second), want)
	}
	r.Must("delete", "--force", "one")
	if ended, err := poll(first); !ended {
		t.Errorf("the process did not end: %v", err)
	}
}

// TestSystemdsListenersAreHandedDown: under the numbers that the process expects.
func TestSystemdsListenersAreHandedDown(t *testing.T) {
	r := newRuntime(t)
	path := filepath.Join(r.Directory(), "handed")
	if err := os.WriteFile(path, []byte("handed"), 0o644); err != nil {
		t.Fatal(err)
	}
	open := func() *os.File {
		file, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { file.Close() })
		return file
	}
	bundle := r.Bundle("[ $LISTEN_FDS-$LISTEN_PID = 1-1 ] && [ $(cat <&3) = handed ] && [ $(cat <&4) = handed ] && [ ! -e /proc/self/fd/5 ]")
	// LISTEN_PID must be clove-oci's own pid: the shell's, which executes it.
	command := r.Command(t.Context(), "run", "--preserve-fds", "1", "--bundle", bundle, "one")
	command.Args = append([]string{"sh", "-c", `LISTEN_FDS=1 LISTEN_PID=$$ exec "$@"`, "sh"}, append([]string{command.Path}, command.Args[1:]...)...)
	command.Path = "/bin/sh"
	command.ExtraFiles = []*os.File{open(), open(), open()}
	if text, err := command.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, text)
	}
	if got := inside(t, r, "echo $LISTEN_FDS-$LISTEN_PID"); got != "-" {
		t.Errorf("without any: %s", got)
	}
}

// TestTheServiceManagerIsNotifiedOfTheStart: when the process inside says so, with the process
// to watch: by run, and by create and start.
func TestTheServiceManagerIsNotifiedOfTheStart(t *testing.T) {
	r := newRuntime(t)
	path, manager := listen(t, r, "unixgram", "manager")
	env := []string{"NOTIFY_SOCKET=" + path}
	ready := directory(t, r)
	// busybox cannot send datagrams: the test sends the notification through another path of
	// the socket.
	bundle := r.Bundle("[ $NOTIFY_SOCKET = /run/notify/notify.sock ] && exec sleep 1000", bind(ready, "/tmp"))
	socket := filepath.Join(r.Root, "one", "notify", "notify.sock")

	say := func() {
		sender, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer unix.Close(sender)
		tell := func(text string) error { return unix.Sendto(sender, []byte(text), 0, &unix.SockaddrUnix{Name: socket}) }
		// The kernel makes the file a moment before it finds the socket by it.
		r.Await("a process listens at the container's socket", func() bool { return tell("STATUS=soon") == nil })
		if err := tell("READY=1\nSTATUS=now"); err != nil {
			t.Fatal(err)
		}
	}
	hear := func() {
		for _, want := range []string{"READY=1\n", "MAINPID=", "BARRIER=1"} {
			if ready, err := poll(manager); !ready {
				t.Fatalf("nothing came instead of %q: %v", want, err)
			}
			got, fds := message(t, int(manager.Fd()))
			if want == "MAINPID=" { // it runs by now; otherwise there would be no pid
				want += strconv.Itoa(r.State("one").Pid) + "\n"
			}
			if got != want {
				t.Errorf("the manager heard %q, not %q", got, want)
			}
			for _, fd := range fds {
				unix.Close(fd) // closing it ends the wait at the barrier
			}
		}
	}
	wait := background(t, r, nil, env, "run", "--detach", "--bundle", bundle, "one")
	say()
	hear()
	if status := wait(); status != 0 {
		t.Errorf("run: status %d", status)
	}
	r.Must("delete", "--force", "one")

	if status := background(t, r, nil, env, "create", "--bundle", bundle, "one")(); status != 0 {
		t.Fatalf("create: status %d", status)
	}
	wait = background(t, r, nil, env, "start", "one")
	say()
	hear()
	if status := wait(); status != 0 {
		t.Errorf("start: status %d", status)
	}
	r.Must("delete", "--force", "one")
}

// TestAnEndIsNoReadiness: start does not wait for a notification that cannot come.
func TestAnEndIsNoReadiness(t *testing.T) {
	r := newRuntime(t)
	path, manager := listen(t, r, "unixgram", "manager")
	env := []string{"NOTIFY_SOCKET=" + path}
	if status := background(t, r, nil, env, "run", "--bundle", r.Bundle("exit 5"), "one")(); status != 5 {
		t.Errorf("run: status %d", status)
	}
	background(t, r, nil, env, "create", "--bundle", r.Bundle("exit 5"), "one")()
	if status := background(t, r, nil, env, "start", "one")(); status != 0 {
		t.Errorf("start: status %d", status)
	}
	r.Must("delete", "one")
	if n, _ := unix.Poll([]unix.PollFd{{Fd: int32(manager.Fd()), Events: unix.POLLIN}}, 0); n != 0 {
		t.Error("the manager heard something")
	}
}
