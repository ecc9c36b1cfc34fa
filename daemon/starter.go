package daemon

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"

	"clove.run/clove/agent"
	"clove.run/clove/daemon/supervisor"
	"clove.run/clove/internal/lasting"
	"clove.run/clove/internal/pidfd"
	"clove.run/clove/runtime"
)

// starter starts supervisors.
type starter interface {
	// start returns when the agent executes, or its start has failed. gone is
	// closed when the supervisor has ended.
	start(order supervisor.Order) (answer supervisor.Answer, gone <-chan struct{}, err error)
}

// processes starts supervisors and guards as processes that outlive cloved. It keeps
// nothing of them in memory.
type processes struct {
	program string // clove's path
	state   string
	run     string
	// cgroup opens the one that they begin in; nil is cloved's own.
	cgroup func() (*os.File, error)
}

// start runs one supervisor, sends it its order, and reads its answer.
func (p processes) start(order supervisor.Order) (supervisor.Answer, <-chan struct{}, error) {
	var answer supervisor.Answer
	failures, err := p.failures(order.LogDir)
	if err != nil {
		return answer, nil, err
	}
	defer failures.Close()
	gone, err := p.ask(failures, "supervise", "supervisor", order, &answer)
	return answer, gone, err
}

// ask starts clove with a hidden command, in a cgroup that is not cloved's where
// there is one, sends it its order and reads its answer. role is what errors call
// the process. gone is closed when it has ended, and nil where it never began.
func (p processes) ask(log *os.File, command, role string, order any, answer *supervisor.Answer) (gone <-chan struct{}, err error) {
	orders, sending, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer sending.Close()
	gone, answers, err := p.spawn(log, command, orders)
	// The child has its own copy. With this one open, a child that died would not be
	// noticed while a long order is written: the pipe would only be full.
	orders.Close()
	if err != nil {
		return nil, fmt.Errorf("cannot start a %s: %w", role, err)
	}
	defer answers.Close()
	// gofail: var starterSpawned string
	// if err := failpoint(starterSpawned, ""); err != nil { return gone, err }

	if err := json.NewEncoder(sending).Encode(order); err != nil {
		return gone, fmt.Errorf("cannot give a %s its order: %w", role, err)
	}
	sending.Close()
	// gofail: var starterOrdered string
	// if err := failpoint(starterOrdered, ""); err != nil { return gone, err }

	// The answer comes when the agent executes. The supervisor bounds the start
	// (runtime/start.go), so there is no limit here.
	if err := json.NewDecoder(answers).Decode(answer); err != nil {
		if errors.Is(err, io.EOF) {
			err = errors.New("it ended without sending an answer")
		}
		return gone, fmt.Errorf("a %s failed (%s says more): %w", role, log.Name(), err)
	}
	// gofail: var starterAnswered string
	// if err := failpoint(starterAnswered, ""); err != nil { return gone, err }

	return gone, nil
}

// spawn starts clove with a hidden command. gone is closed when it has ended; the answers
// are the caller's to close.
func (p processes) spawn(log *os.File, command string, orders *os.File) (gone <-chan struct{}, answers *os.File, err error) {
	group, err := p.cgroup()
	if err != nil {
		return nil, nil, err
	}
	if group != nil {
		defer group.Close()
	}
	process := exec.Command(p.program, command, "--root", p.state, "--run-dir", p.run)
	// Nothing else of cloved's environment: its unit may have secrets there.
	process.Env = []string{"PATH=" + os.Getenv("PATH"), "LANG=C.UTF-8"}
	if answers, err = lasting.Start(process, group, log, orders); err != nil {
		return nil, nil, err
	}
	ended := make(chan struct{})
	go func() { defer close(ended); reap(process) }()
	return ended, answers, nil
}

// reap waits for a supervisor's end; what it did is in the store. Wait alone
// would keep one of cloved's threads asleep in the kernel for each agent.
func reap(command *exec.Cmd) {
	if process, err := pidfd.Open(command.Process.Pid); err == nil {
		process.Wait(context.Background())
		process.Close()
	}
	_ = command.Wait()
}

// failures is the file that a supervisor's stderr goes to: a crash is written there. It is
// appended to, so that the crash of an earlier start is still there after a restart.
func (p processes) failures(logDir string) (file *os.File, err error) {
	for range 3 { // the run may be removed at this moment, and its log with it: the supervisor finds that
		if err = os.MkdirAll(logDir, 0o700); err != nil {
			return nil, err
		}
		file, err = os.OpenFile(filepath.Join(logDir, runtime.SupervisorOutput), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
		if !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	return file, err
}

// FindClove looks for the clove that belongs to this cloved: first beside it, where the
// same installation put both. An order has no version in it.
func FindClove() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	for _, path := range []string{filepath.Join(filepath.Dir(self), "clove"), "/usr/bin/clove", "/usr/local/bin/clove"} {
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return path, nil
		}
	}
	return "", &agent.Error{Kind: agent.KindNotFound, Step: "find clove", Message: "clove is not beside " + self,
		Hint: "install all of clove's programs in one directory"}
}

// failedStep names what failed in a start; empty: the agent executes.
func failedStep(a supervisor.Answer) string {
	if a.Error == nil {
		return ""
	}
	return cmp.Or(a.Error.Data.Step, a.Error.Data.Word)
}
