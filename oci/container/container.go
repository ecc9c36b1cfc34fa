package container

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/opencontainers/runc/libcontainer"
	"github.com/opencontainers/runc/libcontainer/specconv"
	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"clove.run/clove/internal/pidfd"

	// Device rules on cgroup v2 are programs; without this import they are not
	// installed at all.
	_ "github.com/opencontainers/cgroups/devices"
)

// The errors that a caller branches on: no such container, and one without a live process.
// Their texts are what shims match on.
var (
	ErrNotExist   = libcontainer.ErrNotExist
	ErrNotRunning = libcontainer.ErrNotRunning
)

// Engine is where an engine's containers are. It holds nothing open: each call
// reads the directory anew, because others change it between two calls.
type Engine struct {
	Root          string // absolute; a directory for each container, named by its id
	Register      string // where containers are noted while they are made (internal/creates)
	SystemdCgroup bool   // cgroupsPath is SLICE:PREFIX:NAME, made by systemd
	Hooks         Hooks  // nil: none
}

// Container is an existing container: a directory below the engine's root.
type Container struct {
	engine Engine
	lib    *libcontainer.Container
	notify *notify  // nil: there is no service manager
	unborn bool     // its first process does not exist yet, and libcontainer must not be asked for its state
	note   *os.File // open while the container is made; nil for one that Load found
}

// Options are what create's command line says of the container itself. The runtime
// specification has no fields for them.
type Options struct {
	NoPivot      bool   // the root is on a ramdisk, which pivot_root(2) cannot leave
	NoNewKeyring bool   // the container has the caller's session keyring
	NotifySocket string // the service manager's; "": none
}

// Create checks spec and makes the container's directory. Relative paths in spec are
// relative to the working directory, which State reports as the bundle. After an error
// there is no directory, except one that existed before under the same id.
func (e Engine) Create(id string, spec *specs.Spec, o Options) (*Container, error) {
	notify := e.notifyOf(id, o.NotifySocket)
	if notify != nil {
		notify.mount(spec)
	}
	config, err := specconv.CreateLibcontainerConfig(&specconv.CreateOpts{
		CgroupName: id, UseSystemdCgroup: e.SystemdCgroup,
		NoPivotRoot: o.NoPivot, NoNewKeyring: o.NoNewKeyring, Spec: spec,
	})
	if err != nil {
		return nil, err
	}
	lib, err := libcontainer.Create(e.Root, id, config)
	if err != nil {
		return nil, err
	}
	c := &Container{engine: e, lib: lib, notify: notify, unborn: true}
	// After libcontainer.Create, which refuses a directory that exists.
	if c.note, err = e.begin(c.Directory(), config.Cgroups); err == nil && notify != nil {
		err = os.Mkdir(notify.directory, 0o755)
	}
	if err != nil {
		c.destroy(false)
		return nil, err
	}
	return c, nil
}

// Load finds a container by its directory; without one the error is ErrNotExist. It calls
// Hooks.Loaded, which restarts what enforces the container's rules if that was killed.
func (e Engine) Load(id string) (*Container, error) {
	if id == "" {
		return nil, errors.New("container id cannot be empty")
	}
	lib, err := libcontainer.Load(e.Root, id)
	if err != nil {
		return nil, err
	}
	c := &Container{engine: e, lib: lib}
	c.loaded()
	return c, nil
}

// Exec lets the process of a created container execute. If create was given a
// service manager's socket too, Exec ends when the process is ready, or has ended.
// An error of the hooks leaves the process waiting: Exec may be called again.
func (c *Container) Exec(notifySocket string) error {
	status, err := c.lib.Status()
	if err != nil {
		return err
	}
	switch status {
	case libcontainer.Created:
		return c.exec(notifySocket)
	case libcontainer.Stopped:
		return errors.New("cannot start a container that has stopped")
	case libcontainer.Running:
		return errors.New("cannot start an already running container")
	default:
		return fmt.Errorf("cannot start a container in the %s state", status)
	}
}

// exec listens on the container's notify socket before the process can write to it. Only
// create knows whether there is one: the directory is mounted in the container.
func (c *Container) exec(notifySocket string) error {
	notify := c.engine.notifyOf(c.lib.ID(), notifySocket)
	if notify != nil {
		err := notify.listen()
		if errors.Is(err, os.ErrNotExist) {
			return c.release() // create got no NOTIFY_SOCKET, so the container has no such directory
		}
		if err != nil {
			return err
		}
		defer notify.close()
	}
	if err := c.release(); err != nil || notify == nil {
		return err
	}
	return notify.await(c)
}

// Signal signals the container's first process. KILL ends all its processes if they share a
// pid namespace with others: their first process is then no init whose end would end them.
// The error is ErrNotRunning if no process is left.
func (c *Container) Signal(signal unix.Signal) error { return c.lib.Signal(signal) }

// Delete removes a container that is not running. One that was never started is killed
// first, and with force a running one too. It waits for the killed process, ten seconds at
// most. After an error the container still exists, and Delete may be called again.
func (c *Container) Delete(force bool) error {
	status, err := c.lib.Status()
	switch {
	case force:
		// A stopped container as well: without a pid namespace of its own, processes may be
		// left in its cgroup, which could then not be removed.
		return c.kill()
	case err != nil:
		return err
	case status == libcontainer.Stopped:
		return c.remove()
	case status == libcontainer.Created:
		return c.kill()
	}
	return fmt.Errorf("cannot delete container %s that is not stopped: %s", c.lib.ID(), status)
}

// killPatience is as long as runc waits. A process that is still there after KILL hangs in
// the kernel.
const killPatience = 10 * time.Second

// kill ends all processes and removes the container. The pidfd is opened before the signal,
// so that the wait cannot be for another process with the same number.
func (c *Container) kill() error {
	process, err := c.watch()
	if err != nil {
		return err
	}
	_ = c.lib.Signal(unix.SIGKILL) // it may have ended already, which the next lines notice
	if process != nil {
		defer process.Close()
		if !process.WaitFor(killPatience) {
			return errors.New("container init still running")
		}
	}
	return c.remove()
}

// watch opens a pidfd of the first process, so that its end is an event, where runc polls.
// It returns nil if the process has ended.
func (c *Container) watch() (*pidfd.Process, error) {
	state, err := c.lib.State()
	if err != nil {
		return nil, err
	}
	// The number may have been reused before pidfd.Open. Status compares the start time
	// after it: if the container is not stopped, the pidfd is of its process.
	process, err := pidfd.Open(state.InitProcessPid)
	status, statusErr := c.lib.Status()
	switch {
	case statusErr != nil || status == libcontainer.Stopped:
		if err == nil {
			process.Close()
		}
		return nil, statusErr
	case err != nil:
		return nil, fmt.Errorf("cannot watch the container's process: %w", err)
	}
	return process, nil
}
