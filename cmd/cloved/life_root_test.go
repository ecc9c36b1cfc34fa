//go:build root

package main

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/api"
	"clove.run/clove/api/methods"
	"clove.run/clove/client"
	"clove.run/clove/internal/testhost"
)

// served is one cloved whose service manager is the test.
type served struct {
	t       testing.TB
	dir     string
	manager *net.UnixConn
	cmd     *exec.Cmd
	log     bytes.Buffer
}

// serveOne starts the built program, with or without a socket that is passed to it.
func serveOne(t testing.TB, config string, handed *os.File) *served {
	t.Helper()
	testhost.Root(t)
	s := &served{t: t, dir: t.TempDir()}
	testhost.NoResidue(t)
	s.write(config)
	manager, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: filepath.Join(s.dir, "notify"), Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	s.manager = manager
	args := []string{"--root", s.path("state"), "--run-dir", s.path("run"), "--config", s.path("clove.yaml")}
	// The shell executes cloved, so LISTEN_PID is cloved's pid.
	s.cmd = exec.Command("sh", append([]string{"-c", `LISTEN_PID=$$ exec "$0" "$@"`, testhost.Binary(t, "cloved")}, args...)...)
	s.cmd.Env = append(os.Environ(), "NOTIFY_SOCKET="+s.path("notify"), "WATCHDOG_USEC=500000")
	if handed != nil {
		s.cmd.Env = append(s.cmd.Env, "LISTEN_FDS=1")
		s.cmd.ExtraFiles = []*os.File{handed}
	}
	s.cmd.Stderr = &s.log
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.cmd.Process.Kill()
		s.cmd.Wait() // its status is shown if a test fails
		manager.Close()
		if t.Failed() {
			t.Log(s.log.String())
		}
	})
	return s
}

func (s *served) path(name string) string { return filepath.Join(s.dir, name) }

func (s *served) write(config string) {
	s.t.Helper()
	if err := os.WriteFile(s.path("clove.yaml"), []byte(config), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// hears waits for a notification to the service manager.
func (s *served) hears(want string) {
	s.t.Helper()
	if err := s.manager.SetReadDeadline(time.Now().Add(testhost.Patience(time.Minute))); err != nil {
		s.t.Fatal(err)
	}
	buffer := make([]byte, 1024)
	for {
		n, err := s.manager.Read(buffer)
		if err != nil {
			s.t.Fatalf("no %q: %v", want, err)
		}
		if strings.Contains(string(buffer[:n]), want) {
			return
		}
	}
}

func (s *served) ask() error {
	c, err := client.Dial(context.Background(), s.path("run/clove.sock"))
	if err != nil {
		return err
	}
	defer c.Close()
	_, err = client.Do(context.Background(), c, methods.Info, api.Nothing{})
	return err
}

// From READY to STOPPING: at READY it answers; it notifies the watchdog; a reload is reported,
// and an invalid file changes nothing.
func TestServiceLife(t *testing.T) {
	s := serveOne(t, "group: root\n", nil)
	s.hears("READY=1\nSTATUS=serves")
	if err := s.ask(); err != nil {
		t.Error(err)
	}
	s.hears("WATCHDOG=1")
	hangup := func(config, want string) {
		t.Helper()
		s.write(config)
		if err := s.cmd.Process.Signal(unix.SIGHUP); err != nil {
			t.Fatal(err)
		}
		s.hears("RELOADING=1")
		s.hears(want)
	}
	hangup("group: root\nnonsense: 1\n", "the configuration was not reloaded")
	hangup("group: root\nlog_level: debug\n", "the configuration was reloaded")
	if err := s.ask(); err != nil {
		t.Error(err)
	}
	if err := s.cmd.Process.Signal(unix.SIGTERM); err != nil {
		t.Fatal(err)
	}
	s.hears("STOPPING=1")
	if err := s.cmd.Wait(); err != nil {
		t.Errorf("it ends with %v", err)
	}
	if _, err := os.Stat(s.path("run/clove.sock")); !os.IsNotExist(err) {
		t.Errorf("its socket is left: %v", err)
	}
}

// A stopped process does not notify the watchdog: the control of TestServiceLife.
func TestWatchdogStarves(t *testing.T) {
	s := serveOne(t, "group: root\n", nil)
	s.hears("WATCHDOG=1")
	if err := s.cmd.Process.Signal(unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	var status unix.WaitStatus
	for {
		if _, err := unix.Wait4(s.cmd.Process.Pid, &status, unix.WUNTRACED, nil); err != unix.EINTR {
			break
		}
	}
	s.forget() // drops earlier notifications
	if err := s.manager.SetReadDeadline(time.Now().Add(2 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if n, err := s.manager.Read(make([]byte, 64)); err == nil {
		t.Errorf("a stopped cloved says %d bytes", n)
	}
}

// forget drops the notifications that have arrived.
func (s *served) forget() {
	s.t.Helper()
	raw, err := s.manager.SyscallConn()
	if err != nil {
		s.t.Fatal(err)
	}
	err = raw.Control(func(fd uintptr) {
		for {
			_, _, err := unix.Recvfrom(int(fd), make([]byte, 64), unix.MSG_DONTWAIT)
			if err != nil && err != unix.EINTR {
				return
			}
		}
	})
	if err != nil {
		s.t.Fatal(err)
	}
}

// A socket that was passed to cloved is served, and stays when cloved ends.
func TestServiceTakesItsSocket(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "run"), 0o711); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "run", "clove.sock")
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	listener.SetUnlinkOnClose(false)
	file, err := listener.File()
	if err != nil {
		t.Fatal(err)
	}
	listener.Close()
	defer file.Close()
	s := serveOne(t, fmt.Sprintf("group: root\nsocket: %s\n", path), file)
	s.hears("READY=1")
	c, err := client.Dial(context.Background(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if info, err := client.Do(context.Background(), c, methods.Info, api.Nothing{}); err != nil || info.PID != s.cmd.Process.Pid {
		t.Errorf("%+v, %v", info, err)
	}
	c.Close()
	if err := s.cmd.Process.Signal(unix.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Wait(); err != nil {
		t.Errorf("it ends with %v", err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Errorf("the service manager's socket is gone: %v", err)
	}
}

// With a mistake on the command line or in the file, cloved ends at once with a hint.
func TestServiceRefuses(t *testing.T) {
	testhost.Root(t)
	dir := t.TempDir()
	bad := filepath.Join(dir, "bad.yaml")
	if err := os.WriteFile(bad, []byte("sockets: x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"start"}, "takes no arguments"},
		{[]string{"--config", bad}, "sockets"},
		{[]string{"--config", filepath.Join(dir, "absent.yaml")}, "absent.yaml"},
	} {
		out, err := exec.Command(testhost.Binary(t, "cloved"), append([]string{"--root", dir, "--run-dir", dir}, c.args...)...).CombinedOutput()
		if err == nil || !strings.Contains(string(out), c.want) || !strings.Contains(string(out), "hint:") {
			t.Errorf("%q: %v, %s", c.args, err, out)
		}
	}
}
