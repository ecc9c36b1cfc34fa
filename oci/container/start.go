package container

import (
	"errors"
	"strconv"

	"github.com/opencontainers/runc/libcontainer"
	"github.com/opencontainers/runtime-spec/specs-go"
	"github.com/sirupsen/logrus"
	"golang.org/x/sys/unix"

	"clove.run/clove/oci/convert"
)

// Start says how a process of a container is started.
type Start struct {
	Wait          bool              // the process waits for Exec
	Detach        bool              // Run returns at once; implied by Wait
	Keep          bool              // the container is not removed when its process ends
	Subreaper     bool              // Run reaps the orphans of the process
	PidFile       string            // absolute; "": none
	ConsoleSocket string            // path of a Unix socket that gets the terminal's master; "": none
	PidfdSocket   string            // path of a Unix socket that gets the process's pidfd; "": none
	PreserveFDs   int               // how many descriptors, after the standard streams and systemd's, the process inherits
	NetworkRules  bool              // sockets of the caller's network are refused
	Cgroups       map[string]string // below the container's own, by controller; "" is the key on cgroup v2
}

// Run starts the first process, which CheckProcess has accepted. Unless it is detached, Run
// stays until the process ends and returns its status as a shell would: 128 and the number
// of the signal that ended it. The status is 0 for a detached process and -1 with an error.
// After that, and after an error, the container is removed unless Keep is set.
func (c *Container) Run(p *specs.Process, o Start) (status int, err error) {
	o.Detach = o.Detach || o.Wait
	defer func() {
		if err != nil || !o.Detach {
			c.destroy(o.Keep)
		}
	}()
	process, err := convert.Process(p)
	if err != nil {
		return -1, err
	}
	process.Init = true
	handDownListeners(process)
	// Without Wait nothing else makes the socket; with it, Exec does.
	if c.notify != nil && !o.Wait {
		if err := c.notify.listen(); err != nil {
			return -1, err
		}
		defer c.notify.close()
	}
	return c.launch(process, p.Terminal, o)
}

// Join starts one more process, which CheckProcess has accepted, in a running container, as
// Run does. In a paused container it is refused unless paused is true: the process would be
// frozen before its first instruction.
func (c *Container) Join(p *specs.Process, o Start, paused bool) (status int, err error) {
	switch status, err := c.lib.Status(); {
	case err != nil:
		return -1, err
	case status == libcontainer.Stopped:
		return -1, errors.New("cannot exec in a stopped container")
	case status == libcontainer.Paused && !paused:
		return -1, errors.New("cannot exec in a paused container (use --ignore-paused to override)")
	}
	process, err := convert.Process(p)
	if err != nil {
		return -1, err
	}
	process.SubCgroupPaths = o.Cgroups
	return c.launch(process, p.Terminal, o)
}

// launch is what Run and Join share. Everything that can be refused is refused before the
// process exists.
func (c *Container) launch(process *libcontainer.Process, terminal bool, o Start) (int, error) {
	if err := checkTerminal(terminal, o); err != nil {
		return -1, err
	}
	catchIgnored()
	// The process logs through this program's pipe until it executes.
	process.LogLevel = strconv.Itoa(int(logrus.GetLevel()))
	if err := preserve(process, o.PreserveFDs); err != nil {
		return -1, err
	}
	if o.NetworkRules {
		if err := checkSockets(process, !terminal); err != nil {
			return -1, err
		}
	}
	// Before the process exists: SIGCHLD of a process that ends at once would be missed.
	watcher := newWatcher(o)
	streams, err := c.connect(process, terminal, o)
	if err != nil {
		return -1, err
	}
	defer streams.close()
	if err := c.start(process, o); err != nil {
		return -1, err
	}
	if err := c.setOff(process, streams, o); err != nil {
		// The caller gets an error, so no process may stay, waiting or running.
		return -1, errors.Join(err, terminate(process))
	}
	if process.Init {
		c.announce(o)
	}
	if o.Detach {
		return 0, nil
	}
	status, err := watcher.follow(process, streams.resize)
	if process.Init && !o.Keep {
		// Without a pid namespace of its own the container may have processes left. One
		// that holds the output open would keep this program waiting for its end.
		_ = c.lib.Signal(unix.SIGKILL) // there may be none
	}
	return status, err
}

// start connects to the engine's pidfd socket just for the time of the start: libcontainer
// sends the pidfd from inside.
func (c *Container) start(process *libcontainer.Process, o Start) error {
	if o.PidfdSocket != "" {
		connection, socket, err := dial(o.PidfdSocket)
		if err != nil {
			return err
		}
		defer connection.Close()
		defer socket.Close()
		process.PidfdSocket = socket
	}
	return c.lib.Start(process)
}

// setOff completes the start of a process that exists. The first process still waits: the
// hooks run before it executes, here or in Exec. The pid file comes last, so that it never
// names a process whose start failed.
func (c *Container) setOff(process *libcontainer.Process, streams *streams, o Start) error {
	if err := streams.started(); err != nil {
		return err
	}
	if process.Init {
		c.unborn = false
		if err := c.noted(); err != nil {
			return err
		}
		if err := c.created(process.Args); err != nil {
			return err
		}
	}
	if process.Init && !o.Wait {
		if err := c.release(); err != nil {
			return err
		}
	}
	return writePidFile(o.PidFile, process)
}

// destroy logs its error and does not return it: the caller already returns the failure
// that made the removal necessary.
func (c *Container) destroy(keep bool) {
	if keep {
		return
	}
	if err := c.remove(); err != nil {
		logrus.Warn(err)
	}
}

// checkTerminal has runc's conditions and messages.
func checkTerminal(terminal bool, o Start) error {
	switch {
	case o.Detach && terminal && o.ConsoleSocket == "":
		return errors.New("cannot allocate tty if clove-oci will detach without setting console socket")
	case (!o.Detach || !terminal) && o.ConsoleSocket != "":
		return errors.New("cannot use console socket if clove-oci will not detach or allocate tty")
	}
	return nil
}
