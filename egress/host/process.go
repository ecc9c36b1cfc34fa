package host

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"clove.run/clove/internal/nsthread"
)

// Program is the name of the gate's program, which is installed beside clove-init.
const Program = "clove-gate"

// process is clove-gate itself.
type process struct {
	command *exec.Cmd
	thread  *nsthread.Thread // its parent: the parent-death signal is tied to a thread
	stderr  *head
	waited  bool
}

// head keeps only the beginning of what is written to it: a gate that was taken over can
// write for ever, and what is kept is root's memory.
type head struct{ kept bytes.Buffer }

const headBytes = 4 << 10

func (h *head) Write(p []byte) (int, error) {
	h.kept.Write(p[:min(len(p), headBytes-h.kept.Len())])
	return len(p), nil // else the gate's write would fail
}

// namespaces is every kind but the user's: clove-gate gives up root by itself,
// before it reads a byte.
const namespaces = unix.CLONE_NEWNET | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP

func startProcess(executable string, id uint32, channel *os.File) (*process, error) {
	thread, err := nsthread.Start(0)
	if err != nil {
		return nil, err
	}
	p := &process{thread: thread, stderr: &head{}}
	p.command = exec.Command(executable, strconv.FormatUint(uint64(id), 10))
	// Not nil, which would mean clove's own environment. That may hold secrets, and the
	// gate reads what an agent writes.
	p.command.Env = []string{}
	p.command.Dir = "/"
	p.command.Stderr = p.stderr
	p.command.ExtraFiles = []*os.File{channel}
	p.command.SysProcAttr = &syscall.SysProcAttr{Cloneflags: namespaces, Pdeathsig: unix.SIGKILL}
	// On a thread that lives as long as the gate: with the thread's end the kernel would
	// send the parent-death signal.
	if err := thread.Do(p.command.Start); err != nil {
		thread.Close()
		return nil, fmt.Errorf("cannot start clove-gate: %w", err)
	}
	return p, nil
}

// kill ends the process, if it has not ended, and reaps it.
func (p *process) kill() error {
	if p.waited {
		return nil
	}
	p.waited = true
	p.command.Process.Kill() // an error: it has ended already
	p.command.Wait()         // its status is in ProcessState
	p.thread.Close()
	return nil
}

// failure reports how the process ended, and the first line of its stderr. It is called
// after kill, which does not change the status of a process that had ended.
func (p *process) failure() error {
	how := p.command.ProcessState.String()
	if line, _, _ := strings.Cut(strings.TrimSpace(p.stderr.kept.String()), "\n"); line != "" {
		how += ": " + line
	}
	return errors.New(how)
}
