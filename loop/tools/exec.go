package tools

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"clove.run/clove/tools/builtin"
)

// Times of a command.
const (
	execTime    = 2 * time.Minute
	maxExecTime = time.Hour
	// leaves is how long a command that has ended may hold its output open, by a process
	// that it left in the background.
	leaves = time.Second
)

type execArguments struct {
	Command string `json:"command"`
	Timeout int    `json:"timeout_seconds"`
}

func (b *Box) exec(ctx context.Context, a execArguments) (string, error) {
	limit := execTime
	if a.Timeout > 0 {
		limit = min(time.Duration(a.Timeout)*time.Second, maxExecTime)
	}
	if a.Timeout < 0 || strings.TrimSpace(a.Command) == "" {
		return "", errors.New("give a command, and a time that is not negative")
	}
	timed, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	output := &builtin.Ends{Most: MaxResult}
	cmd := exec.CommandContext(timed, "/bin/sh", "-c", a.Command)
	cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = b.Dir, output, output, leaves
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	err := cmd.Run()
	var ended *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case timed.Err() != nil:
		return output.Text() + fmt.Sprintf("\n[killed after %s]", limit), nil
	case errors.As(err, &ended) && ended.Exited():
		return output.Text() + fmt.Sprintf("\n[exit status %d]", ended.ExitCode()), nil
	case errors.As(err, &ended):
		return output.Text() + fmt.Sprintf("\n[%s]", ended), nil
	case errors.Is(err, exec.ErrWaitDelay):
		return output.Text() + "\n[exit status 0; a process that it left in the background still has its output]", nil
	case err != nil:
		return "", err
	}
	return output.Text() + "\n[exit status 0]", nil
}
