package runtime

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/opencontainers/runc/libcontainer"
	"github.com/opencontainers/runc/libcontainer/configs"
	"github.com/opencontainers/runc/libcontainer/specconv"
	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	libcgroups "github.com/opencontainers/cgroups"
	// Device rules on cgroup v2 are programs; without this import they are not
	// installed at all.
	_ "github.com/opencontainers/cgroups/devices"

	"clove.run/clove/internal/pidfd"
	"clove.run/clove/oci/convert"
)

// sandbox is libcontainer's container with clove-init as its first process.
// All of its methods run on the launch thread, which sees the root.
type sandbox struct {
	container *libcontainer.Container
	process   *libcontainer.Process
	spec      *specs.Spec
	pid       int           // clove-init's, on the host; 0: never started
	ahead     time.Duration // of CLOCK_BOOTTIME inside, against the host's
	ended     chan struct{} // closed once clove-init is reaped
	await     sync.Once     // starts the goroutine that reaps it
	entered   map[int]bool  // pids of the processes that entered and are not reaped
	mu        sync.Mutex    // guards entered: each is reaped by its own goroutine
}

// holdCgroupRoot lets libcontainer's cgroup library take the one handle on
// /sys/fs/cgroup that it keeps for the life of this process. Taken on a launch
// thread, it would point nowhere when that thread's mount namespace is gone,
// and no later run of this process could start.
var holdCgroupRoot = sync.OnceFunc(func() {
	_, _ = libcgroups.ReadFile("/sys/fs/cgroup", "cgroup.procs") // v1 has no such file there: the handle counts
})

// stateName is the directory, within the run directory, that libcontainer
// keeps its own state in.
const stateName = "sandbox"

// createSandbox prepares the container. userNamespace is the path of a user
// namespace that has spec's id mappings already: one that libcontainer made
// would be the host root's own, and count there what the agent uses. Given in
// spec, libcontainer would start a process to read the mappings from it.
func createSandbox(dir string, spec *specs.Spec, userNamespace string) (*sandbox, error) {
	config, err := specconv.CreateLibcontainerConfig(&specconv.CreateOpts{CgroupName: stateName, Spec: spec})
	if err != nil {
		return nil, fmt.Errorf("cannot convert the config: %w", err)
	}
	config.Namespaces.Add(configs.NEWUSER, userNamespace)
	if config.OomScoreAdj, err = oomScore(); err != nil {
		return nil, err
	}
	// Until clove-init holds its socket, the launch thread's end is its end.
	config.ParentDeathSignal = int(unix.SIGKILL)
	container, err := libcontainer.Create(dir, stateName, config)
	if err != nil {
		return nil, fmt.Errorf("cannot create the sandbox: %w", err)
	}
	return &sandbox{container: container, spec: spec, entered: map[int]bool{}, ended: make(chan struct{})}, nil
}

// oomScore is the agent's oom_score_adj, nil where it can inherit clove's. A service
// manager may spare clove from the OOM killer (OOMScoreAdjust=); an agent that inherited
// that would be spared too, even by its own memory limit.
func oomScore() (*int, error) {
	text, err := os.ReadFile("/proc/self/oom_score_adj")
	if err != nil {
		return nil, fmt.Errorf("cannot read clove's own oom_score_adj: %w", err)
	}
	if !strings.HasPrefix(string(text), "-") {
		return nil, nil
	}
	return new(int), nil
}

// start makes the namespaces and everything in them, up to the moment before
// clove-init is executed. stdio are the agent's ends of its streams; the other
// files become descriptors 3, 4 and 5.
func (s *sandbox) start(stdio []*os.File, control, exit, executable *os.File) error {
	var err error
	if s.process, err = s.processOf(s.spec.Process.Args, []string{"GOMAXPROCS=1"}); err != nil {
		return err
	}
	s.process.Init = true
	s.process.Stdin, s.process.Stdout, s.process.Stderr = stdio[0], stdio[1], stdio[2]
	s.process.ExtraFiles = []*os.File{control, exit, executable}
	if err := s.container.Start(s.process); err != nil {
		return errors.Join(fmt.Errorf("cannot start the sandbox: %w", err), s.reapStrays())
	}
	pid, err := s.process.Pid()
	s.pid = pid
	return err
}

// exec lets clove-init execute. Until then libcontainer's own init waits inside for its
// FIFO to be opened.
func (s *sandbox) exec() error {
	if err := s.container.Exec(); err != nil {
		return fmt.Errorf("cannot execute clove-init: %w", err)
	}
	return nil
}

// processOf is a process of clove-init's.
func (s *sandbox) processOf(args, env []string) (*libcontainer.Process, error) {
	p := *s.spec.Process
	p.Args = args
	p.Env = append([]string{"HOME=/"}, env...) // clove-init's own; HOME spares a search in /etc/passwd
	return convert.Process(&p)
}

// reap waits for clove-init, which must have been killed or have ended. The
// kernel lets PID 1 end only after all others of its namespace, which
// includes the reaping of each (pid_namespaces(7)): a zombie that is not reaped
// holds it without end. So the wait has a limit, and its error names what is left.
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

// pidNamespace names the pid namespace of a process; empty: it is gone.
func pidNamespace(pid int) string {
	name, _ := os.Readlink(fmt.Sprintf("/proc/%d/ns/pid", pid))
	return name
}

// lastInside describes the processes in the pid namespace of init, itself
// aside, to show why it does not end.
func lastInside(init int) string {
	of, left := pidNamespace(init), []string{}
	for _, name := range entriesOf("/proc") {
		pid, err := strconv.Atoi(name)
		if err != nil || pid == init || of == "" || pidNamespace(pid) != of {
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
