package runtime

import (
	"errors"
	"fmt"
	"os"
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
