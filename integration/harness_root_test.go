//go:build root

package integration

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/internal/testhost"
)

// host is a private installation of clove: with its own state and run directory, and a check
// at the end that nothing of it is left.
type host struct {
	t          *testing.T
	bin        string
	state, run string
	// inside starts a command in another namespace; nil: it starts here.
	inside func(func() error) error
	user   *syscall.Credential // the user that calls clove; nil: root
}

// begin starts a command where this host is.
func (h *host) begin(cmd *exec.Cmd) error {
	if h.inside == nil {
		return cmd.Start()
	}
	return h.inside(cmd.Start)
}

// patience bounds every command of a test.
func patience() time.Duration { return testhost.Patience(time.Minute) }

func newHost(t *testing.T) *host {
	t.Helper()
	testhost.Root(t)
	bin := os.Getenv("CLOVE_BIN_DIR")
	if bin == "" {
		t.Fatal("CLOVE_BIN_DIR does not name the folder of the binaries: run `make root`")
	}
	// Short, because the kernel limits the length of some paths.
	dir, err := os.MkdirTemp("", "clove")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o711); err != nil {
		t.Fatal(err)
	}
	h := &host{t: t, bin: bin, state: filepath.Join(dir, "state"), run: filepath.Join(dir, "run")}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Mkdir(h.run, 0o711); err != nil {
		t.Fatal(err)
	}
	testhost.NoResidue(t, h.run)
	t.Cleanup(func() {
		if r := h.clove("check"); r.code != 0 {
			t.Errorf("clove check finds something left:\n%s%s", r.stdout, r.stderr)
		}
	})
	return h
}

// result is the result of one command.
type result struct {
	stdout, stderr string
	code           int
	record         agent.Record // of `clove run`; zero when there was none
}

// command prepares clove with this host's directories.
func (h *host) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, filepath.Join(h.bin, "clove"), args...)
	cmd.Env = append(os.Environ(), "CLOVE_ROOT="+h.state, "CLOVE_RUN_DIR="+h.run)
	if h.user != nil {
		cmd.Dir, cmd.SysProcAttr = "/", &syscall.SysProcAttr{Credential: h.user}
	}
	return cmd
}

// clove runs one command to its end.
func (h *host) clove(args ...string) result {
	h.t.Helper()
	return h.cloveWith("", args...)
}

// cloveWith is clove with a standard input.
func (h *host) cloveWith(stdin string, args ...string) result {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience())
	defer cancel()
	cmd := h.command(ctx, args...)
	var out, errs bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &out, &errs
	err := h.begin(cmd)
	if err == nil {
		err = cmd.Wait()
	}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) || ctx.Err() != nil {
		h.t.Fatalf("clove %v: %v, %v\n%s", args, err, ctx.Err(), &errs)
	}
	return result{stdout: out.String(), stderr: errs.String(), code: cmd.ProcessState.ExitCode()}
}

// recordFile returns a path for --result, in a directory of the caller's.
func (h *host) recordFile() string {
	if h.user == nil {
		return filepath.Join(h.t.TempDir(), "record.json")
	}
	return filepath.Join(userDir(h.t, nil), "record.json")
}

// agent runs `clove run` with the flags before `--` and the command after it, and reads the
// record.
func (h *host) agent(flags []string, command ...string) result {
	h.t.Helper()
	return h.agentWith("", flags, command...)
}

func (h *host) agentWith(stdin string, flags []string, command ...string) result {
	h.t.Helper()
	file := h.recordFile()
	args := append([]string{"run", "--rm", "--result", file}, flags...)
	r := h.cloveWith(stdin, append(append(args, "--"), command...)...)
	r.record = readRecord(h.t, file)
	if r.record.ExitCode != r.code {
		h.t.Errorf("the record says %d, clove exited with %d\n%s", r.record.ExitCode, r.code, r.stderr)
	}
	return r
}

// running is a `clove run` with which the test communicates while it runs.
type running struct {
	h      *host
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stdout *bufio.Reader
	stderr output
	file   string
	ctx    context.Context // ends the run
	cancel context.CancelFunc
}

// output collects what a program writes, and may be read meanwhile.
type output struct {
	mu   sync.Mutex // guards text
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// start begins `clove run`; wait ends it.
func (h *host) start(flags []string, command ...string) *running {
	h.t.Helper()
	// A test waits for parts of the run, each within patience.
	ctx, cancel := context.WithTimeout(context.Background(), 3*patience())
	r := &running{h: h, file: h.recordFile(), ctx: ctx, cancel: cancel}
	args := append([]string{"run", "--rm", "--result", r.file}, flags...)
	r.cmd = h.command(ctx, append(append(args, "--"), command...)...)
	r.cmd.Stderr = &r.stderr
	r.stdin, _ = r.cmd.StdinPipe() // fails only if it is set already
	out, _ := r.cmd.StdoutPipe()
	r.stdout = bufio.NewReader(out)
	if err := h.begin(r.cmd); err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(r.abandon)
	return r
}

// line waits for the agent's next line of output, by which a test knows the agent's progress.
func (r *running) line() string {
	r.h.t.Helper()
	text, err := r.stdout.ReadString('\n')
	if r.ctx.Err() != nil {
		r.h.t.Fatalf("no line from the agent within %v\n%s", 3*patience(), &r.stderr)
	}
	if err != nil {
		r.h.t.Fatalf("no line from the agent: %v\n%s", err, &r.stderr)
	}
	return strings.TrimSpace(text)
}

// abandon ends what a failed test did not wait for.
func (r *running) abandon() {
	if r.cmd.ProcessState == nil {
		r.cmd.Process.Signal(unix.SIGTERM)
		r.stdin.Close()
		r.cmd.Wait()
	}
	r.cancel()
}

// wait ends the agent's input and waits for its record.
func (r *running) wait() result {
	r.h.t.Helper()
	defer r.cancel()
	r.stdin.Close()
	out, _ := io.ReadAll(r.stdout)
	r.cmd.Wait() // the exit status is in ProcessState
	return result{stdout: string(out), stderr: r.stderr.String(), code: r.cmd.ProcessState.ExitCode(), record: readRecord(r.h.t, r.file)}
}

func readRecord(t *testing.T, path string) agent.Record {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("no record: %v", err)
	}
	var record agent.Record
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&record); err != nil {
		t.Fatalf("bad record: %v\n%s", err, text)
	}
	return record
}

// sh runs a shell script as the agent.
func (h *host) sh(script string, flags ...string) result {
	h.t.Helper()
	return h.agent(flags, "sh", "-c", script)
}

// want checks status, exit code and output at once, and prints all of them if one is wrong.
func (r result) want(t *testing.T, status agent.Status, code int, stdout string) {
	t.Helper()
	if r.record.Status != status || r.code != code || r.stdout != stdout {
		t.Errorf("got %s, exit %d, output %q; want %s, exit %d, output %q\nstderr: %s",
			r.record.Status, r.code, r.stdout, status, code, stdout, r.stderr)
	}
}
