package container

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
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

// What a caller branches on: no such container, and one without a live process.
// Their texts are what shims match on.
var (
	ErrNotExist   = libcontainer.ErrNotExist
	ErrNotRunning = libcontainer.ErrNotRunning
)

// Engine is where an engine's containers are. It holds nothing open: each call
// reads the directory anew, because others change it between two calls.
type Engine struct {
	Root          string // absolute; a directory for each container, named by its id
	SystemdCgroup bool   // cgroupsPath is SLICE:PREFIX:NAME, made by systemd
	Hooks         Hooks  // nil: none
}

// Container is one that exists in a directory of the engine's root.
type Container struct {
	engine Engine
	lib    *libcontainer.Container
	notify *notify // nil: there is no service manager
	unborn bool    // its first process was not made yet, and libcontainer cannot be asked for its state
}

// Options are what create's command line says of the container itself.
type Options struct {
	NoPivot      bool   // the root is on a ramdisk, which pivot_root(2) cannot leave
	NoNewKeyring bool   // the container has the caller's session keyring
	NotifySocket string // the service manager's; "": none
}

// Create checks spec and makes the container's directory. Relative paths in
// spec are below the working directory, which becomes the bundle's in State.
// After an error there is no directory, but for one that the id had already.
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
	// Only now: libcontainer wants to make the container's directory itself.
	if notify != nil {
		if err := os.Mkdir(notify.directory, 0o755); err != nil {
			c.destroy(false)
			return nil, err
		}
	}
	return c, nil
}

// Load finds a container again, or gives ErrNotExist. A hooks that is gone comes
// back with it.
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

// RemoveUnfinished removes what a create left that died before it wrote its
// state: a directory that Load does not see. id is one that Load took.
func (e Engine) RemoveUnfinished(id string) error {
	return os.RemoveAll(filepath.Join(e.Root, id))
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

func (c *Container) exec(notifySocket string) error {
	notify := c.engine.notifyOf(c.lib.ID(), notifySocket)
	if notify != nil {
		err := notify.listen()
		if errors.Is(err, os.ErrNotExist) {
			return c.release() // create made no place for it: the socket is somebody else's
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

// Signal reaches the container's first process, and with KILL all of them where
// they share the pid namespace of others. ErrNotRunning: there is none to reach.
func (c *Container) Signal(signal unix.Signal) error { return c.lib.Signal(signal) }

// Delete removes a container that is not running. One that was never started
// is killed first, and with force any other too. It waits ten seconds at most for
// the killed process. After an error the container is still there, for another try.
func (c *Container) Delete(force bool) error {
	status, err := c.lib.Status()
	switch {
	case force:
		// A stopped one as well: processes without a pid namespace of their own may be left.
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

// killPatience is runc's: behind it, a process hangs in the kernel.
const killPatience = 10 * time.Second

// kill ends all processes and removes the container.
func (c *Container) kill() error {
	process, err := c.watch()
	if err != nil {
		return err
	}
	_ = c.lib.Signal(unix.SIGKILL) // it may be gone already, which the next lines see
	if process != nil {
		defer process.Close()
		if !process.WaitFor(killPatience) {
			return errors.New("container init still running")
		}
	}
	return c.remove()
}

// watch holds the first process before it is killed, so that its end is an event
// and no other process can be taken for it. It is nil where that is gone.
func (c *Container) watch() (*pidfd.Process, error) {
	state, err := c.lib.State()
	if err != nil {
		return nil, err
	}
	// libcontainer compares start times: after it, the pidfd is of that process or of none.
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
