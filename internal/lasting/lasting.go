// Package lasting starts programs of clove's that outlive their parent.
package lasting

import (
	"os"
	"os/exec"
	"syscall"
)

// The descriptors that such a program begins with, besides the log on standard
// error: its order, and the pipe that takes its answer.
const (
	OrderFD  = 3
	AnswerFD = 4
)

// Start starts the command with nothing of the caller's but the order and the log, in its
// own session, and in the cgroup unless that is nil. The answers are the caller's to read
// and close. The session (setsid(2)) keeps it from signals to the caller's process group
// and terminal.
func Start(command *exec.Cmd, cgroup, log, order *os.File) (answers *os.File, err error) {
	answers, theirs, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	// The child has its own: with this copy open, its end would not be the answers' end.
	defer theirs.Close()
	// It keeps no file system busy that the caller happened to start in.
	command.Dir = "/"
	// One processor is enough for one agent; Go keeps some 200 KiB for each further one.
	command.Env = append(command.Env, "GOGC=25", "GOMAXPROCS=1")
	command.Stderr, command.ExtraFiles = log, []*os.File{order, theirs}
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if cgroup != nil {
		// clone3(2), CLONE_INTO_CGROUP: at no moment is it in the caller's cgroup, whose
		// service may be stopped.
		command.SysProcAttr.UseCgroupFD, command.SysProcAttr.CgroupFD = true, int(cgroup.Fd())
	}
	if err := command.Start(); err != nil {
		answers.Close()
		return nil, err
	}
	return answers, nil
}
