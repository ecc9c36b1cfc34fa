//go:build root

package engines

import (
	"bytes"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/internal/testhost"
)

// readyTime is how long a daemon of an idle host may take to serve.
const readyTime = 30 * time.Second

// daemon is an engine's own process.
type daemon struct {
	cmd   *exec.Cmd
	log   string
	ended chan struct{}
}

// startDaemon starts a daemon and returns when it reports that it is ready, as it would to
// systemd. It ends before the test does, with its children.
func startDaemon(t *testing.T, name string, args ...string) *daemon {
	t.Helper()
	dir := t.TempDir()
	notify, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: filepath.Join(dir, "notify"), Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer notify.Close()
	d := &daemon{cmd: exec.Command(name, args...), log: filepath.Join(dir, "log"), ended: make(chan struct{})}
	log, err := os.Create(d.log)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	d.cmd.Stdout, d.cmd.Stderr = log, log
	d.cmd.Env = append(os.Environ(), "NOTIFY_SOCKET="+notify.LocalAddr().String())
	if err := d.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(d.ended)
		d.cmd.Wait() // stop looks at the state
	}()
	t.Cleanup(func() { d.stop(t) })
	d.awaitReady(t, notify)
	return d
}

func (d *daemon) awaitReady(t *testing.T, notify *net.UnixConn) {
	t.Helper()
	if err := notify.SetReadDeadline(time.Now().Add(testhost.Patience(readyTime))); err != nil {
		t.Fatal(err)
	}
	// If it dies, the test must not wait until the deadline.
	done := make(chan struct{})
	defer close(done)
	go func() {
		select {
		case <-d.ended:
			notify.SetReadDeadline(time.Now()) // fails only after it was closed, and nothing reads then
		case <-done:
		}
	}()
	message := make([]byte, 4096)
	for {
		n, err := notify.Read(message)
		if err != nil {
			t.Fatalf("%s is not ready: %v", d.cmd.Path, err)
		}
		if bytes.Contains(message[:n], []byte("READY=1")) {
			return
		}
	}
}

// stop ends the daemon with TERM and prints its log if the test failed.
func (d *daemon) stop(t *testing.T) {
	t.Helper()
	if err := d.cmd.Process.Signal(unix.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Error(err)
	}
	select {
	case <-d.ended:
	case <-time.After(testhost.Patience(readyTime)):
		t.Errorf("%s does not end", d.cmd.Path)
	}
	if !t.Failed() {
		return
	}
	log, err := os.ReadFile(d.log)
	if err != nil {
		t.Error(err)
	}
	const enough = 6000
	t.Logf("%s:\n%s", d.cmd.Path, log[max(0, len(log)-enough):])
}

// write puts a configuration file into the test's own folder.
func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}
