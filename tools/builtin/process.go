package builtin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/tools"
)

// Bounds of a process.
const (
	execTime  = time.Minute
	output    = 256 << 10 // bytes of a stream
	maxOutput = 4 << 20
	// leaves is how long the output of a process group that was killed may stay open, by a process
	// that has left the group.
	leaves = time.Second
)

// run runs a program as the leader of a process group of its own, and kills the group at its end.
// The end of ctx kills it, too.
func run(ctx context.Context, c *exec.Cmd) error {
	c.WaitDelay = leaves
	// Pdeathsig is for the end of this program; its main thread starts the process.
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := c.Start(); err != nil {
		return err
	}
	// The leader is a zombie while the group is killed, so that its id cannot be another group's.
	over := make(chan struct{})
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		select {
		case <-ctx.Done():
			_ = unix.Kill(-c.Process.Pid, unix.SIGKILL)
		case <-over:
		}
	}()
	for {
		if err := unix.Waitid(unix.P_PID, c.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil); !errors.Is(err, unix.EINTR) {
			break
		}
	}
	close(over)
	<-watched
	_ = unix.Kill(-c.Process.Pid, unix.SIGKILL)
	err := c.Wait()
	if errors.Is(err, exec.ErrWaitDelay) {
		return nil // the program itself ended well
	}
	return err
}

// ExecArguments are those of exec.
type ExecArguments struct {
	Argv    []string          `json:"argv"`
	Env     map[string]string `json:"env"`
	Cwd     string            `json:"cwd"`
	Stdin   string            `json:"stdin"`
	Timeout int               `json:"timeout_s"`        // 0: 60
	Output  int               `json:"max_output_bytes"` // of each stream; 0: 256 KiB
}

// ExecResult is the result of exec, in JSON.
type ExecResult struct {
	ExitCode        int     `json:"exit_code"` // -1: ended by a signal
	Stdout          string  `json:"stdout"`
	Stderr          string  `json:"stderr"`
	StdoutTruncated bool    `json:"stdout_truncated"`
	StderrTruncated bool    `json:"stderr_truncated"`
	TimedOut        bool    `json:"timed_out"`
	Duration        float64 `json:"duration_s"`
}

// Exec runs a program without a shell.
func (b *Box) Exec(ctx context.Context, a ExecArguments) (string, error) {
	dir, err := b.dir(a.Cwd)
	if err != nil {
		return "", err
	}
	c, err := program(a.Argv, dir)
	if err != nil {
		return "", err
	}
	for name, value := range a.Env {
		if name == "" || strings.ContainsAny(name, "=\x00") || strings.ContainsRune(value, 0) {
			return "", invalid("env: %q is no name of a variable, or its value has a NUL byte", name)
		}
		c.Env = append(c.Environ(), name+"="+value) // the last one of a name holds
	}
	limit := min(execTime, tools.MaxExecTime)
	if a.Timeout > 0 {
		limit = min(time.Duration(min(a.Timeout, math.MaxInt32))*time.Second, tools.MaxExecTime)
	}
	timed, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	most := or(a.Output, output, maxOutput)
	stdout, stderr := &Ends{Most: most}, &Ends{Most: most}
	c.Stdin, c.Stdout, c.Stderr = strings.NewReader(a.Stdin), stdout, stderr
	began := time.Now()
	err = run(timed, c)
	var ended *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case err != nil && !errors.As(err, &ended) && timed.Err() == nil && c.ProcessState == nil:
		return "", fmt.Errorf("cannot run %s: %w", a.Argv[0], err)
	}
	r := ExecResult{ExitCode: c.ProcessState.ExitCode(), Stdout: stdout.Text(), Stderr: stderr.Text(), StdoutTruncated: stdout.Left() > 0, StderrTruncated: stderr.Left() > 0,
		TimedOut: timed.Err() != nil, Duration: math.Round(time.Since(began).Seconds()*1000) / 1000}
	return b.encode(&r, func(excess int) bool { return r.shorten(stdout, stderr, excess) })
}

// shorten leaves more of the longer stream out.
func (r *ExecResult) shorten(stdout, stderr *Ends, excess int) bool {
	longer, text, flag := stdout, &r.Stdout, &r.StdoutTruncated
	if len(r.Stderr) > len(r.Stdout) {
		longer, text, flag = stderr, &r.Stderr, &r.StderrTruncated
	}
	kept := min(longer.Most, longer.all)
	if kept == 0 {
		return false
	}
	longer.shrink(min(kept*3/4, max(kept-excess, kept/8)))
	*text, *flag = longer.Text(), true
	return true
}

// program finds the program of a command.
func program(argv []string, dir string) (*exec.Cmd, error) {
	if len(argv) == 0 || argv[0] == "" {
		return nil, invalid("argv has no program")
	}
	for _, word := range argv {
		if strings.ContainsRune(word, 0) {
			return nil, invalid("argv has a NUL byte")
		}
	}
	if strings.Contains(argv[0], "/") && argv[0][0] != '/' {
		return nil, invalid("the program %q must be an absolute path, or a name on PATH", argv[0])
	}
	c := exec.Command(argv[0], argv[1:]...) //nolint:gosec // what the caller may run is decided outside
	if c.Err != nil {
		return nil, c.Err
	}
	c.Dir = dir
	return c, nil
}

// command runs a command from a template. Its stdin has the arguments; its stdout is the result.
func (b *Box) command(ctx context.Context, o tools.Order) (string, error) {
	argv, err := tools.Expand(o.Command, o.Arguments)
	if err != nil {
		return "", &Invalid{err}
	}
	c, err := program(argv, b.Dir)
	if err != nil {
		return "", err
	}
	arguments := o.Arguments
	if len(arguments) == 0 {
		arguments = json.RawMessage("{}")
	}
	stdout, stderr := &head{most: b.Most}, &Ends{Most: tools.MaxError / 2}
	c.Stdin, c.Stdout, c.Stderr = io.MultiReader(strings.NewReader(string(arguments)), strings.NewReader("\n")), stdout, stderr
	err = run(ctx, c)
	result := strings.ToValidUTF8(string(stdout.text), "\uFFFD")
	if stdout.left > 0 {
		result += fmt.Sprintf("\n[%d bytes left out]", stdout.left)
	}
	switch reason := strings.TrimSpace(stderr.Text()); {
	case ctx.Err() != nil:
		return result, ctx.Err()
	case c.ProcessState == nil:
		return result, fmt.Errorf("cannot run %s: %w", argv[0], err)
	case !c.ProcessState.Success() && reason == "":
		return result, fmt.Errorf("%s: %s", argv[0], c.ProcessState)
	case !c.ProcessState.Success():
		return result, fmt.Errorf("%s\n[%s: %s]", reason, argv[0], c.ProcessState)
	}
	return result, nil
}
