package runtime

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/internal/pidfd"
)

// reap waits for clove-init, which must have been killed or have ended. The
// kernel lets PID 1 end only behind everybody else of its namespace, which
// includes the reaping of each (pid_namespaces(7)): a zombie that nobody reaps
// holds it for ever. So the wait has a limit, and its error names what is left.
func (s *sandbox) reap(patience time.Duration) error {
	if s.pid == 0 {
		return nil
	}
	s.await.Do(func() {
		go func() {
			s.process.Wait() // its status says nothing: the exit file and the socket do
			close(s.ended)
		}()
	})
	select {
	case <-s.ended:
		return nil
	case <-time.After(patience):
		return fmt.Errorf("cannot end clove-init (process %d) within %s: it waits for %s", s.pid, patience, lastInside(s.pid))
	}
}

// destroy removes the cgroup and libcontainer's state. A clove-init that is
// still there makes it fail.
func (s *sandbox) destroy() error {
	if err := s.container.Destroy(); err != nil {
		return fmt.Errorf("cannot destroy the sandbox: %w", err)
	}
	return nil
}

// lastInside describes the processes in the pid namespace of init, itself
// aside, to show why it does not end.
func lastInside(init int) string {
	namespace := func(pid int) string {
		name, _ := os.Readlink(fmt.Sprintf("/proc/%d/ns/pid", pid)) // none: it is gone, or not of this one
		return name
	}
	of, left := namespace(init), []string{}
	for _, name := range names("/proc") {
		pid, err := strconv.Atoi(name)
		if err != nil || pid == init || of == "" || namespace(pid) != of {
			continue
		}
		if status, err := pidfd.Status(pid); err == nil {
			left = append(left, fmt.Sprintf("process %d (%s, state %s, child of %s)", pid, status["Name"], status["State"], status["PPid"]))
		}
	}
	if len(left) == 0 {
		return "a process that is not visible here"
	}
	return strings.Join(left, ", ")
}

// reapStrays kills and reaps what a start that failed has left. libcontainer starts
// in three stages, all of them children of the launch thread (clone(2),
// CLONE_PARENT). It reaps the later two only if the first succeeds, and where
// the agent's end kills the third, the first fails: a zombie inside, for which
// clove-init's end would wait.
//
// It runs on the launch thread, so nothing else is started there meanwhile.
func (s *sandbox) reapStrays() error {
	for deadline := time.Now().Add(killTimeout); ; {
		strays, err := s.strays()
		if err != nil || len(strays) == 0 {
			return err
		}
		for _, pid := range strays {
			if err := killChild(pid, time.Until(deadline)); err != nil {
				return fmt.Errorf("cannot take away process %d, a stage of a start that failed: %w", pid, err)
			}
		}
	}
}

// strays are the launch thread's children that are neither clove-init nor a
// process that entered.
func (s *sandbox) strays() ([]int, error) {
	s.mu.Lock() // before the look: a process that is reaped after it is no stray
	defer s.mu.Unlock()
	children, err := threadChildren()
	return slices.DeleteFunc(children, func(pid int) bool { return pid == s.pid || s.entered[pid] }), err
}

// threadChildren lists the calling thread's children, zombies included.
func threadChildren() (pids []int, err error) {
	text, err := os.ReadFile("/proc/thread-self/children") // proc_pid_children(5)
	if err != nil {
		return nil, fmt.Errorf("cannot list clove's children: %w", err)
	}
	for _, field := range strings.Fields(string(text)) {
		pid, err := strconv.Atoi(field)
		if err != nil {
			return nil, fmt.Errorf("cannot list clove's children: %w", err)
		}
		pids = append(pids, pid)
	}
	return pids, nil
}

// killChild kills and reaps a child of the calling thread. Until then its pid
// cannot be another's.
func killChild(pid int, patience time.Duration) error {
	// A zombie accepts signals, so a stage that has ended already is no error.
	if err := unix.Kill(pid, unix.SIGKILL); err != nil {
		return err
	}
	process, err := pidfd.Open(pid)
	if err != nil {
		return err
	}
	defer process.Close()
	if !process.WaitFor(patience) {
		return fmt.Errorf("killed, it is still there after %s", patience)
	}
	for {
		// WALL: one that ends with another signal than CHLD counts as well.
		if _, err := unix.Wait4(pid, nil, unix.WALL, nil); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}
