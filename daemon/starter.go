package daemon

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/daemon/supervisor"
	"clove.run/clove/internal/pidfd"
)

// starter makes supervisors.
type starter interface {
	// start begins a run and returns when the agent executes, or does not.
	// gone is closed when the supervisor has ended.
	start(order supervisor.Order) (answer supervisor.Answer, gone <-chan struct{}, err error)
}

// processes starts supervisors as processes of their own.
type processes struct {
	program string // clove's path
	state   string
	run     string
	// cgroup opens the one that supervisors begin in; nil is cloved's own.
	cgroup func() (*os.File, error)
}

// start runs one supervisor, gives it its order, and hears what became of it.
func (p processes) start(order supervisor.Order) (supervisor.Answer, <-chan struct{}, error) {
	var answer supervisor.Answer
	failures, err := p.failures(order.LogDir)
	if err != nil {
		return answer, nil, err
	}
	defer failures.Close()
	give, hear, gone, err := p.spawn(failures, "supervise")
	if err != nil {
		return answer, nil, err
	}
	defer give.Close()
	defer hear.Close()
	// gofail: var starterSpawned string
	// if err := failpoint(starterSpawned, ""); err != nil { return answer, gone, err }

	if err := json.NewEncoder(give).Encode(order); err != nil {
		return answer, gone, fmt.Errorf("cannot give a supervisor its order: %w", err)
	}
	give.Close()
	// gofail: var starterOrdered string
	// if err := failpoint(starterOrdered, ""); err != nil { return answer, gone, err }

	if err := json.NewDecoder(hear).Decode(&answer); err != nil {
		if errors.Is(err, io.EOF) {
			err = errors.New("it ended without a word")
		}
		return answer, gone, fmt.Errorf("a supervisor failed (%s says more): %w", failures.Name(), err)
	}
	// gofail: var starterAnswered string
	// if err := failpoint(starterAnswered, ""); err != nil { return answer, gone, err }

	return answer, gone, nil
}

// spawn starts the process for word, in a cgroup that is not cloved's where there is one.
// The pipes are the caller's: give takes the order, hear has the answer.
func (p processes) spawn(failures *os.File, word string) (give, hear *os.File, gone <-chan struct{}, err error) {
	group, err := p.cgroup()
	if err != nil {
		return nil, nil, nil, err
	}
	if group != nil {
		defer group.Close()
	}
	orders, give, err := os.Pipe()
	if err != nil {
		return nil, nil, nil, err
	}
	defer orders.Close()
	hear, answers, err := os.Pipe()
	if err != nil {
		give.Close()
		return nil, nil, nil, err
	}
	defer answers.Close()
	command := p.command(group, word)
	command.Stderr = failures
	// In the order of supervisor.OrderFD and supervisor.AnswerFD.
	command.ExtraFiles = []*os.File{orders, answers}
	if err := command.Start(); err != nil {
		give.Close()
		hear.Close()
		return nil, nil, nil, fmt.Errorf("cannot start a supervisor: %w", err)
	}
	ended := make(chan struct{})
	go func() { defer close(ended); bury(command) }()
	return give, hear, ended, nil
}

// command is what word names, a hidden command of clove's, and gives it nothing of cloved's but its order and its errors:
// it is to outlive cloved. group is nil where it begins in cloved's own.
func (p processes) command(group *os.File, word string) *exec.Cmd {
	command := exec.Command(p.program, word, "--root", p.state, "--run-dir", p.run)
	command.Dir = "/"
	// One processor is enough for one agent; Go keeps some 200 KiB for each
	// further one.
	command.Env = []string{"PATH=" + os.Getenv("PATH"), "LANG=C.UTF-8", "GOGC=25", "GOMAXPROCS=1"}
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if group != nil {
		command.SysProcAttr.UseCgroupFD, command.SysProcAttr.CgroupFD = true, int(group.Fd())
	}
	return command
}

// bury waits for a supervisor's end; what it did is in the store. Wait alone
// would keep a thread of ours asleep in the kernel for each agent.
func bury(command *exec.Cmd) {
	if process, err := pidfd.Open(command.Process.Pid); err == nil {
		process.Wait(context.Background())
		process.Close()
	}
	_ = command.Wait()
}

// failures is where a supervisor that crashes says so.
func (p processes) failures(logDir string) (*os.File, error) {
	if err := os.MkdirAll(logDir, 0o700); err != nil {
		return nil, err
	}
	return os.OpenFile(filepath.Join(logDir, "supervisor"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
}

// FindClove looks for the clove that belongs to this cloved.
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

// failedStep names what failed in a start; empty: it executes.
func failedStep(a supervisor.Answer) string {
	if a.Error == nil {
		return ""
	}
	return cmp.Or(a.Error.Data.Step, a.Error.Data.Word)
}

// startFailed makes an answer of what kept a supervisor from giving one.
func startFailed(err error) supervisor.Answer { return supervisor.Answer{Error: api.ErrorOf(err)} }
