package tools

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"time"
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
	output := &ends{}
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
		return output.text() + fmt.Sprintf("\n[killed after %s]", limit), nil
	case errors.As(err, &ended) && ended.Exited():
		return output.text() + fmt.Sprintf("\n[exit status %d]", ended.ExitCode()), nil
	case errors.As(err, &ended):
		return output.text() + fmt.Sprintf("\n[%s]", ended), nil
	case errors.Is(err, exec.ErrWaitDelay):
		return output.text() + "\n[exit status 0; a process that it left in the background still has its output]", nil
	case err != nil:
		return "", err
	}
	return output.text() + "\n[exit status 0]", nil
}

// ends keeps the first and the last half of MaxResult of what is written.
type ends struct {
	head, tail []byte
	all        int
}

const half = MaxResult / 2

func (e *ends) Write(p []byte) (int, error) {
	n := len(p)
	e.all += n
	if free := half - len(e.head); free > 0 {
		take := min(free, len(p))
		e.head, p = append(e.head, p[:take]...), p[take:]
	}
	// Twice as much is held, so that few writes move anything.
	if len(p) > half {
		p = p[len(p)-half:]
	}
	if len(e.tail)+len(p) > 2*half {
		e.tail = append(e.tail[:0], e.tail[len(e.tail)-half:]...)
	}
	e.tail = append(e.tail, p...)
	return n, nil
}

func (e *ends) text() string {
	tail := e.tail[max(0, len(e.tail)-half):]
	text := string(e.head)
	if left := e.all - len(e.head) - len(tail); left > 0 {
		text += fmt.Sprintf("\n[%d bytes left out]\n", left)
	}
	return strings.ToValidUTF8(text+string(tail), "\uFFFD")
}
