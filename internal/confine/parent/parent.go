// Package parent starts and ends the processes that drop all privileges with package confine.
package parent

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"clove.run/clove/internal/nsthread"
)

// Process is one process without rights. It ends with the one that started it, unless
// StartApart did.
type Process struct {
	command *exec.Cmd
	thread  *nsthread.Thread // its parent: the parent-death signal is tied to a thread
	stderr  *head
	waited  bool
}

// head keeps only the beginning of what is written to it: a process that was taken over can
// write for ever, and the kept bytes are root's memory.
type head struct{ kept bytes.Buffer }

const headBytes = 4 << 10

func (h *head) Write(p []byte) (int, error) {
	h.kept.Write(p[:min(len(p), headBytes-h.kept.Len())])
	return len(p), nil // else the process's write would fail
}

// namespaces is every kind but the user's: the process gives up root by itself, before it
// reads a byte.
const namespaces = unix.CLONE_NEWNET | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP

// Start starts a program with the host's user and group id that it is to take, and with
// files as its descriptors from 3 on, the channel first. The caller closes them then. At the
// end of what it asks for it calls Kill.
func Start(executable string, id uint32, files ...*os.File) (*Process, error) {
	return start(executable, strconv.FormatUint(uint64(id), 10), namespaces, unix.SIGKILL, nil, files)
}

// StartOwn is Start for a user other than root: the process keeps the user's id and the host's namespaces, and
// confines itself as far as that goes.
func StartOwn(executable string, files ...*os.File) (*Process, error) {
	return start(executable, own, 0, unix.SIGKILL, nil, files)
}

// own is the argument that package confine knows as Own.
const own = "own"

// StartApart is Start for a process that goes on when the one that started it is gone. journal
// is a file that it keeps open.
func StartApart(executable string, id uint32, journal *os.File, files ...*os.File) (*Process, error) {
	at := firstFD + len(files)
	return start(executable, strconv.FormatUint(uint64(id), 10), namespaces, 0, []string{strconv.Itoa(at)}, append(slices.Clone(files), journal))
}

// firstFD is the descriptor of the first of exec.Cmd.ExtraFiles.
const firstFD = 3

func start(executable, id string, flags uintptr, atEnd syscall.Signal, more []string, files []*os.File) (*Process, error) {
	thread, err := nsthread.Start(0)
	if err != nil {
		return nil, err
	}
	p := &Process{thread: thread, stderr: &head{}}
	p.command = exec.Command(executable, append([]string{id}, more...)...)
	// Not nil, which would mean clove's own environment. That may hold secrets, and the
	// process reads what an agent writes.
	p.command.Env = []string{}
	p.command.Dir = "/"
	p.command.Stderr = p.stderr
	p.command.ExtraFiles = files
	// A process group of its own: ctrl-c in a terminal goes to the whole group of clove, and
	// would end the agent's network before the agent.
	p.command.SysProcAttr = &syscall.SysProcAttr{Cloneflags: flags, Pdeathsig: atEnd, Setpgid: true}
	// On a thread that lives as long as the process: with the thread's end the kernel would
	// send the parent-death signal.
	if err := thread.Do(p.command.Start); err != nil {
		thread.Close()
		return nil, fmt.Errorf("cannot start %s: %w", filepath.Base(executable), err)
	}
	return p, nil
}

// Pid is the process's.
func (p *Process) Pid() int { return p.command.Process.Pid }

// Kill ends the process, if it has not ended, and reaps it. It may be called again.
func (p *Process) Kill() error {
	if p.waited {
		return nil
	}
	p.waited = true
	p.command.Process.Kill() // an error: it has ended already
	p.command.Wait()         // its status is in ProcessState
	p.thread.Close()
	return nil
}

// Failure reports how the process ended, and the first line of its stderr. It is called
// after Kill, which does not change the status of a process that had ended.
func (p *Process) Failure() error {
	how := p.command.ProcessState.String()
	if line, _, _ := strings.Cut(strings.TrimSpace(p.stderr.kept.String()), "\n"); line != "" {
		how += ": " + line
	}
	return errors.New(how)
}
