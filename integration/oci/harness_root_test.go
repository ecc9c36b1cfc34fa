//go:build root

package oci

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"clove.run/clove/internal/ocitest"
	"clove.run/clove/internal/testhost"
)

// newRuntime returns the built clove-oci.
func newRuntime(t *testing.T) *ocitest.Runtime {
	t.Helper()
	return ocitest.New(t, testhost.Binary(t, "clove-oci"))
}

// inside returns what a script prints in a container of its own.
func inside(t *testing.T, r *ocitest.Runtime, script string, edits ...func(*specs.Spec)) string {
	t.Helper()
	got := r.Do("run", "--bundle", r.Bundle(script, edits...), "inside")
	if got.Status != 0 {
		t.Fatalf("%s: %+v", script, got)
	}
	return got.Out
}

// waiting starts a container that runs until the end of the test.
func waiting(t *testing.T, r *ocitest.Runtime, edits ...func(*specs.Spec)) string {
	t.Helper()
	const id = "waiting"
	r.Must("run", "--detach", "--bundle", r.Bundle("exec sleep 1000", edits...), id)
	t.Cleanup(func() { r.Must("delete", "--force", id) })
	return id
}

// directory makes a directory of the test that root inside may use.
func directory(t *testing.T, r *ocitest.Runtime) string {
	t.Helper()
	path, err := os.MkdirTemp(r.Directory(), "shared")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o777); err != nil {
		t.Fatal(err)
	}
	return path
}

// bind mounts source, with more options.
func bind(source, destination string, options ...string) func(*specs.Spec) {
	return func(s *specs.Spec) {
		s.Mounts = append(s.Mounts, specs.Mount{Destination: destination, Source: source, Type: "bind", Options: append([]string{"bind"}, options...)})
	}
}

// listen makes a socket that can be passed to a runtime.
func listen(t *testing.T, r *ocitest.Runtime, network, name string) (path string, file *os.File) {
	t.Helper()
	path = filepath.Join(r.Directory(), name)
	var socket interface {
		File() (*os.File, error)
		io.Closer
	}
	var err error
	address := &net.UnixAddr{Name: path, Net: network}
	if network == "unixgram" {
		socket, err = net.ListenUnixgram(network, address)
	} else {
		var listener *net.UnixListener
		if listener, err = net.ListenUnix(network, address); err == nil {
			listener.SetUnlinkOnClose(false)
			socket = listener
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	if file, err = socket.File(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	return path, file
}

// received returns the descriptor that comes over the next connection.
func received(t *testing.T, listener *os.File) *os.File {
	t.Helper()
	if ready, err := poll(listener); !ready {
		t.Fatalf("no connection came: %v", err)
	}
	connection, _, err := unix.Accept4(int(listener.Fd()), unix.SOCK_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(connection)
	_, fds := message(t, connection)
	if len(fds) != 1 {
		t.Fatalf("%d descriptors came", len(fds))
	}
	return os.NewFile(uintptr(fds[0]), "received")
}

// message reads one message and its descriptors.
func message(t *testing.T, socket int) (text string, fds []int) {
	t.Helper()
	data, rights := make([]byte, 4096), make([]byte, unix.CmsgSpace(4))
	n, m, _, _, err := unix.Recvmsg(socket, data, rights, unix.MSG_CMSG_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	messages, err := unix.ParseSocketControlMessage(rights[:m])
	if err != nil {
		t.Fatal(err)
	}
	for i := range messages {
		more, err := unix.ParseUnixRights(&messages[i])
		if err != nil {
			t.Fatal(err)
		}
		fds = append(fds, more...)
	}
	return string(data[:n]), fds
}

// poll waits until a file can be read.
func poll(file *os.File) (bool, error) {
	for deadline := time.Now().Add(testhost.Patience(30 * time.Second)); ; {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(file.Fd()), Events: unix.POLLIN}}, int(max(time.Until(deadline), 0).Milliseconds()))
		if !errors.Is(err, unix.EINTR) {
			return n > 0, err
		}
	}
}

// background starts a command with which the test communicates, and returns a function that
// waits for its status.
func background(t *testing.T, r *ocitest.Runtime, files []*os.File, env []string, args ...string) (wait func() int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testhost.Patience(time.Minute))
	cmd := r.Command(ctx, args...)
	cmd.ExtraFiles = files
	cmd.Env = append(os.Environ(), env...)
	output, err := os.CreateTemp(r.Directory(), "output")
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = output, output
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { output.Close(); cancel() })
	return func() int {
		if err := cmd.Wait(); err != nil && ctx.Err() != nil {
			t.Errorf("%v: %v", args, err)
		}
		if text, _ := os.ReadFile(output.Name()); len(text) > 0 {
			t.Logf("%v: %s", args, text)
		}
		return cmd.ProcessState.ExitCode()
	}
}

// state returns the settings of a terminal.
func state(terminal *os.File) (unix.Termios, error) {
	settings, err := unix.IoctlGetTermios(int(terminal.Fd()), unix.TCGETS)
	if err != nil {
		return unix.Termios{}, err
	}
	return *settings, nil
}

// readUntil reads up to a text, or to the end.
func readUntil(from io.Reader, text string) string {
	var all strings.Builder
	buffer := make([]byte, 1024)
	for !strings.Contains(all.String(), text) {
		n, err := from.Read(buffer)
		all.Write(buffer[:n])
		if err != nil {
			break
		}
	}
	return all.String()
}
