//go:build root

package runc

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"clove.run/clove/internal/testhost"
)

// runtime is a program with an OCI runtime's command line.
type runtime struct {
	name    string // the name that it uses for itself
	program string
}

// tested and peer are the runtimes that are compared.
func tested(t *testing.T) runtime { return runtime{"clove-oci", testhost.Binary(t, "clove-oci")} }
func peer(t *testing.T) runtime   { return runtime{"runc", testhost.Binary(t, "runc")} }

// vulnerable returns an old runc.
func vulnerable(t *testing.T, version string) runtime {
	return runtime{"runc", testhost.Binary(t, "runc-"+version)}
}

// patience bounds every command; under emulation everything takes longer.
func patience() time.Duration { return testhost.Patience(time.Minute) }

// site is where one runtime has one container: its bundle, its state, its log.
type site struct {
	t       *testing.T
	runtime runtime
	dir     string // contains all of it
	id      string
}

// newSite has an empty root directory for the container.
func newSite(t *testing.T, r runtime, dir, id string) *site {
	t.Helper()
	s := &site{t: t, runtime: r, dir: dir, id: id}
	for _, folder := range []string{"rootfs/proc", "rootfs/dev", "rootfs/sys", "rootfs/tmp", "state"} {
		s.mkdir(folder)
	}
	s.install("rootfs/probe")
	return s
}

func (s *site) path(name string) string { return filepath.Join(s.dir, name) }

func (s *site) mkdir(name string) string {
	s.t.Helper()
	if err := os.MkdirAll(s.path(name), 0o755); err != nil {
		s.t.Fatal(err)
	}
	return s.path(name)
}

func (s *site) write(name, text string) string {
	s.t.Helper()
	if err := os.WriteFile(s.path(name), []byte(text), 0o755); err != nil {
		s.t.Fatal(err)
	}
	return s.path(name)
}

func (s *site) create(name string) *os.File {
	s.t.Helper()
	file, err := os.Create(s.path(name))
	if err != nil {
		s.t.Fatal(err)
	}
	return file
}

func (s *site) read(name string) string {
	text, err := os.ReadFile(s.path(name))
	if err != nil {
		return err.Error()
	}
	return string(text)
}

func (s *site) link(target, name string) {
	s.t.Helper()
	if err := os.Symlink(target, s.path(name)); err != nil {
		s.t.Fatal(err)
	}
}

// install copies the probe there: an attack may change its file.
func (s *site) install(name string) {
	s.t.Helper()
	text, err := os.ReadFile(testhost.Binary(s.t, "clove-probe"))
	if err != nil {
		s.t.Fatal(err)
	}
	// Else another goroutine's child could hold the open file until its exec, and a file that is
	// open for writing cannot be executed (ETXTBSY).
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	s.write(name, string(text))
}

// config writes config.json, from a specification or a text.
func (s *site) config(spec any) {
	s.t.Helper()
	text, isText := spec.(string)
	if !isText {
		encoded, err := json.MarshalIndent(spec, "", " ")
		if err != nil {
			s.t.Fatal(err)
		}
		text = string(encoded)
	}
	s.write("config.json", text)
}

// said is the result of one command line.
type said struct {
	status      int
	out, err    string
	logged      string // the last error of the log, which shims show
	logProblems string // lines of the log that are not JSON
}

// streams are a container's, if they are not the command's own. A missing one is a file of the
// site.
type streams struct{ in, out, err *os.File }

// call runs one command line of the runtime to its end.
func (s *site) call(args ...string) said { return s.callWith(streams{}, args...) }

func (s *site) callWith(io streams, args ...string) said {
	s.t.Helper()
	os.Remove(s.path("log"))
	full := append([]string{"--root", s.path("state"), "--log", s.path("log"), "--log-format", "json"}, args...)
	got := s.raw(io, full...)
	got.logged, got.logProblems = lastError(s.read("log"))
	return got
}

// raw returns a command line without the flags that call adds.
func (s *site) raw(io streams, args ...string) said {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience())
	defer cancel()
	cmd := exec.CommandContext(ctx, s.runtime.program, args...)
	cmd.Dir = s.dir
	cmd.Args[0] = s.runtime.name // some messages contain it
	// Files, because a container that stays would keep a pipe open.
	out, errs := io.out, io.err
	if out == nil {
		out = s.create("stdout")
		defer out.Close()
	}
	if errs == nil {
		errs = s.create("stderr")
		defer errs.Close()
	}
	cmd.Stdout, cmd.Stderr = out, errs
	if io.in != nil {
		cmd.Stdin = io.in
	}
	// A mount of an old version at a wrong place does not reach the host.
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) || ctx.Err() != nil {
		s.t.Fatalf("%s %v: %v, %v\n%s", s.runtime.name, args, err, ctx.Err(), s.read("stderr"))
	}
	got := said{status: cmd.ProcessState.ExitCode(), err: s.read(filepath.Base(errs.Name()))}
	if io.out == nil {
		got.out = s.read("stdout")
	}
	return got
}

// lastError returns the error that a shim would show.
func lastError(log string) (last, problems string) {
	for line := range strings.Lines(log) {
		var entry struct{ Level, Msg, Time string }
		if err := json.Unmarshal([]byte(line), &entry); err != nil {
			problems += line
		}
		if entry.Level == "error" {
			last = entry.Msg
		}
	}
	return last, problems
}

// run is the whole life of a container in the foreground, with an empty input.
func (s *site) run(args ...string) said {
	s.t.Helper()
	null, err := os.Open(os.DevNull)
	if err != nil {
		s.t.Fatal(err)
	}
	defer null.Close()
	reading, writing, err := os.Pipe()
	if err != nil {
		s.t.Fatal(err)
	}
	defer reading.Close()
	read := make(chan string, 1)
	go func() {
		text, _ := io.ReadAll(reading) // only the received text counts
		read <- string(text)
	}()
	got := s.callWith(streams{in: null, out: writing}, append([]string{"run"}, append(args, s.id)...)...)
	writing.Close()
	got.out = <-read
	return got
}
