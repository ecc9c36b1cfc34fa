package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// memories is the host's memory that each peer uses for an idle agent, without the agent. It
// leaves out peers whose work is another process's, and the bare command, which has nothing
// beside it.
func (b *bench) memories(t *table, present []peer) error {
	for _, n := range together {
		for _, p := range present {
			if p.foreign || p.name == "bare exec" {
				continue
			}
			all, own, err := b.idle(p, n)
			if err != nil {
				return fmt.Errorf("cannot measure %s's memory: %w", p.name, err)
			}
			what := atOnceText("host memory beside each idle agent", n)
			t.single(what, p.name, unitMiB, all, "")
			t.single(what, "  of that, anonymous", unitMiB, own, "")
		}
	}
	return nil
}

// idle keeps n agents at once. It returns the mean of the proportional set sizes of what belongs
// to each, and of that the anonymous memory, which each further agent costs, in MiB.
func (b *bench) idle(p peer, n int) (mean, own float64, err error) {
	agents := make([]*idleAgent, 0, n)
	defer func() {
		for _, a := range agents {
			if eerr := a.end(); err == nil {
				err = eerr
			}
		}
	}()
	// One after the other: the start is not measured here.
	for range n {
		a, err := b.startIdle(p)
		if err != nil {
			return 0, 0, err
		}
		agents = append(agents, a)
	}
	for _, a := range agents {
		all, anonymous, err := a.besides()
		if err != nil {
			return 0, 0, err
		}
		mean += float64(all) / 1024 / float64(n)
		own += float64(anonymous) / 1024 / float64(n)
	}
	return mean, own, nil
}

// idleAgent is a command whose agent has printed that it idles.
type idleAgent struct {
	cmd    *exec.Cmd
	stdout io.ReadCloser
	agent  int // its pid on the host
}

// startIdle waits for the agent's line, so that nothing of the start is measured.
func (b *bench) startIdle(p peer) (a *idleAgent, err error) {
	a = &idleAgent{cmd: b.prepare(p, programIdle)}
	if a.stdout, err = a.cmd.StdoutPipe(); err != nil {
		return nil, err
	}
	if err = b.thread.Do(a.cmd.Start); err != nil {
		return nil, err
	}
	if _, err = bufio.NewReader(a.stdout).ReadString('\n'); err == nil {
		a.agent, err = find(a.cmd.Process.Pid)
	}
	if err != nil {
		a.cmd.Process.Kill()
		a.cmd.Wait()
	}
	return a, err
}

// end kills the agent and not the command: the command then cleans up and ends as it
// always does.
func (a *idleAgent) end() error {
	if err := unix.Kill(a.agent, unix.SIGKILL); err != nil {
		return err
	}
	io.Copy(io.Discard, a.stdout)
	a.cmd.Wait() // its status is that of the killed agent
	return nil
}

// besides adds up the memory of the command and its descendants without the agent, in
// KiB.
func (a *idleAgent) besides() (all, anonymous int64, err error) {
	for _, pid := range family(a.cmd.Process.Pid) {
		if pid == a.agent {
			continue
		}
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
		if err != nil {
			return 0, 0, err
		}
		held, err := rollup(text, "Pss:")
		if err != nil {
			return 0, 0, err
		}
		own, err := rollup(text, "Pss_Anon:")
		if err != nil {
			return 0, 0, err
		}
		all, anonymous = all+held, anonymous+own
	}
	return all, anonymous, nil
}

// find returns the last descendant, which has no children: the agent. It has printed a
// line, so it exists.
func find(root int) (int, error) {
	all := family(root)
	if len(all) < 2 {
		return 0, fmt.Errorf("cannot find the agent below process %d", root)
	}
	return all[len(all)-1], nil
}

// family lists a process and its descendants, parents first. Children belong to
// threads, so each thread's list is read.
func family(root int) []int {
	all := []int{root}
	for i := 0; i < len(all); i++ {
		lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", all[i])) // the pattern is well-formed
		for _, list := range lists {
			text, err := os.ReadFile(list)
			if err != nil {
				continue // the thread has ended
			}
			for field := range strings.FieldsSeq(string(text)) {
				if pid, err := strconv.Atoi(field); err == nil {
					all = append(all, pid)
				}
			}
		}
	}
	return all
}

// rollup is one line of smaps_rollup, in KiB (proc_pid_smaps(5)).
func rollup(text []byte, key string) (int64, error) {
	for line := range bytes.Lines(text) {
		fields := strings.Fields(string(line))
		if len(fields) == 3 && fields[0] == key && fields[2] == "kB" {
			return strconv.ParseInt(fields[1], 10, 64)
		}
	}
	return 0, fmt.Errorf("cannot find %s in smaps_rollup", key)
}
