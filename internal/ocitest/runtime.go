package ocitest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/opencontainers/runtime-spec/specs-go"

	"clove.run/clove/internal/testhost"
)

// cgroupParent is where the containers of these tests have their cgroups, in
// every hierarchy.
const cgroupParent = "clove-oci-test"

// patience bounds one command on an idle host.
const patience = 30 * time.Second

// Runtime is an OCI runtime's command line with a root directory of its own.
type Runtime struct {
	t         testing.TB
	Binary    string
	Root      string
	directory string
	specs     int // that were made
	// Flags are global ones that every command gets.
	Flags []string
}

// New prepares a root test of a runtime. At its end, residue of the test is removed, and
// fails the test.
func New(t testing.TB, binary string) *Runtime {
	t.Helper()
	testhost.Root(t)
	directory, err := os.MkdirTemp("", "oci")
	check(t, err)
	t.Cleanup(func() { os.RemoveAll(directory) })
	check(t, os.Chmod(directory, 0o711))
	r := &Runtime{t: t, Binary: binary, Root: filepath.Join(directory, "root"), directory: directory}
	check(t, os.Mkdir(r.Root, 0o711))
	testhost.NoResidue(t, r.Root)
	t.Cleanup(removeParents)
	t.Cleanup(r.sweep)
	return r
}

// Directory is the test's own; others may pass through it, not list it.
func (r *Runtime) Directory() string { return r.directory }

// sweep deletes containers that the test left, and reports them as errors.
func (r *Runtime) sweep() {
	entries, err := os.ReadDir(r.Root)
	check(r.t, err)
	for _, entry := range entries {
		r.t.Errorf("the container %s is left", entry.Name())
		r.Do("delete", "--force", entry.Name())
	}
}

// removeParents removes the parent cgroups that libcontainer made. One that is still in use
// stays, and the residue check reports it.
func removeParents() {
	for _, pattern := range []string{"/sys/fs/cgroup/", "/sys/fs/cgroup/*/"} {
		found, _ := filepath.Glob(pattern + cgroupParent)
		for _, path := range found {
			_ = os.Remove(path)
		}
	}
}

// Result is what one command left.
type Result struct {
	Out, Err string
	Status   int
}

// Command prepares one; it is not started. The global flags come before the command, as in
// runc's command line.
func (r *Runtime) Command(ctx context.Context, args ...string) *exec.Cmd {
	args = append(append([]string{"--root", r.Root}, r.Flags...), args...)
	return exec.CommandContext(ctx, r.Binary, args...)
}

// Do runs a command to its end. Its output goes to files: a container that stays behind
// keeps the descriptors, so a pipe would never reach its end.
func (r *Runtime) Do(args ...string) Result {
	r.t.Helper()
	return r.DoWith(nil, args...)
}

// DoWith is Do with a standard input.
func (r *Runtime) DoWith(in io.Reader, args ...string) Result {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testhost.Patience(patience))
	defer cancel()
	cmd := r.Command(ctx, args...)
	out, errs := r.file(), r.file()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, out, errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) || ctx.Err() != nil {
		r.t.Fatalf("%v: %v, %v\n%s%s", cmd.Args, err, ctx.Err(), content(r.t, out), content(r.t, errs))
	}
	return Result{Out: content(r.t, out), Err: content(r.t, errs), Status: cmd.ProcessState.ExitCode()}
}

// Must is Do for a command that has to succeed; it returns the standard output.
func (r *Runtime) Must(args ...string) string {
	r.t.Helper()
	got := r.Do(args...)
	if got.Status != 0 {
		r.t.Fatalf("%v: status %d\n%s%s", args, got.Status, got.Out, got.Err)
	}
	return got.Out
}

// State is the state of a container that has to be there.
func (r *Runtime) State(id string) specs.State {
	r.t.Helper()
	var state specs.State
	check(r.t, json.Unmarshal([]byte(r.Must("state", id)), &state))
	return state
}

// Await polls until condition holds. It is for changes without an event, such as the end of
// a process that is not a child.
func (r *Runtime) Await(what string, condition func() bool) {
	r.t.Helper()
	const pause = 10 * time.Millisecond
	for deadline := time.Now().Add(testhost.Patience(patience)); !condition(); time.Sleep(pause) {
		if time.Now().After(deadline) {
			r.t.Fatalf("it never came: %s", what)
		}
	}
}

// file is a new one in the test's directory.
func (r *Runtime) file() *os.File {
	r.t.Helper()
	file, err := os.CreateTemp(r.directory, "output")
	check(r.t, err)
	return file
}

// content is what is in file, which it closes.
func content(t testing.TB, file *os.File) string {
	t.Helper()
	defer file.Close()
	text, err := os.ReadFile(file.Name())
	check(t, err)
	return strings.ToValidUTF8(string(bytes.TrimSpace(text)), "?")
}
