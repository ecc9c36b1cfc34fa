package container

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"

	"github.com/opencontainers/runc/libcontainer"
	"github.com/opencontainers/runtime-spec/specs-go"
	"github.com/sirupsen/logrus"
	"golang.org/x/sys/unix"
)

// Start is how a container's first process comes to be.
type Start struct {
	Wait          bool   // it waits for Exec
	Detach        bool   // nobody stays with it; implied by Wait
	Keep          bool   // the container stays when its process ended
	Subreaper     bool   // Run buries what the process leaves behind
	PidFile       string // absolute; "": none
	ConsoleSocket string // gets the terminal's master
	PidfdSocket   string // gets the process's pidfd
	PreserveFDs   int    // so many descriptors from 3 on are the process's
	// Ready, where given, is called when everything is there and nothing executes
	// yet; its error is the end of the container. Create's Wait leaves it to Exec.
	Ready func(*Container) error
}

// Run starts the process that CheckProcess took, and unless it is detached stays
// until it ends and gives its status as a shell would. After an error the
// container is gone.
func (c *Container) Run(p *specs.Process, o Start) (status int, err error) {
	o.Detach = o.Detach || o.Wait
	defer func() {
		if err != nil || !o.Detach {
			c.destroy(o.Keep)
		}
	}()
	if err := checkTerminal(p, o); err != nil {
		return -1, err
	}
	process, err := processOf(p)
	if err != nil {
		return -1, err
	}
	process.Init = true
	process.LogLevel = strconv.Itoa(int(logrus.GetLevel()))
	if process.ExtraFiles, err = preserved(o.PreserveFDs); err != nil {
		return -1, err
	}
	// Before the process exists, or its end could be missed.
	watcher := newWatcher(o)
	streams, err := c.connect(process, p.Terminal, o)
	if err != nil {
		return -1, err
	}
	defer streams.close()
	if err := c.start(process, o); err != nil {
		return -1, err
	}
	streams.started()
	if err := writePidFile(o.PidFile, process); err != nil {
		return -1, errors.Join(err, terminate(process))
	}
	if o.Detach {
		return 0, nil
	}
	return watcher.follow(process)
}

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
	if o.Wait {
		return c.lib.Start(process)
	}
	if o.Ready == nil {
		return c.lib.Run(process)
	}
	if err := c.lib.Start(process); err != nil {
		return err
	}
	if err := o.Ready(c); err != nil {
		return errors.Join(err, terminate(process))
	}
	return c.lib.Exec()
}

// destroy says what it cannot do where the engine looks for it: the failure
// that made it necessary is the one to return.
func (c *Container) destroy(keep bool) {
	if keep {
		return
	}
	if err := c.lib.Destroy(); err != nil {
		logrus.Warn(err)
	}
}

func checkTerminal(p *specs.Process, o Start) error {
	switch {
	case o.Detach && p.Terminal && o.ConsoleSocket == "":
		return errors.New("cannot allocate tty if clove-oci will detach without setting console socket")
	case (!o.Detach || !p.Terminal) && o.ConsoleSocket != "":
		return errors.New("cannot use console socket if clove-oci will not detach or allocate tty")
	case !o.Detach && p.Terminal:
		return errors.New("cannot show a terminal in the foreground: give a console socket and detach")
	}
	return nil
}

// firstPreserved is the first descriptor after the standard streams.
const firstPreserved = 3

func preserved(count int) ([]*os.File, error) {
	var files []*os.File
	for i := range count {
		fd := firstPreserved + i
		if _, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err != nil {
			return nil, fmt.Errorf("unable to stat preserved-fd %d (of %d): %w", i, count, err)
		}
		files = append(files, os.NewFile(uintptr(fd), "PreserveFD:"+strconv.Itoa(fd)))
	}
	return files, nil
}

// dial connects to a socket of the engine's. libcontainer wants the second of
// the two, which is the same connection.
func dial(path string) (net.Conn, *os.File, error) {
	connection, err := net.Dial("unix", path)
	if err != nil {
		return nil, nil, err
	}
	socket, err := connection.(*net.UnixConn).File()
	if err != nil {
		connection.Close()
		return nil, nil, err
	}
	return connection, socket, nil
}

// writePidFile leaves nobody half a number to read.
func writePidFile(path string, process *libcontainer.Process) error {
	if path == "" {
		return nil
	}
	pid, err := process.Pid()
	if err != nil {
		return err
	}
	temporary := filepath.Join(filepath.Dir(path), "."+filepath.Base(path))
	file, err := os.OpenFile(temporary, os.O_RDWR|os.O_CREATE|os.O_EXCL|os.O_SYNC, 0o666)
	if err != nil {
		return err
	}
	_, err = file.WriteString(strconv.Itoa(pid))
	if err = errors.Join(err, file.Close()); err != nil {
		return errors.Join(err, os.Remove(temporary))
	}
	return os.Rename(temporary, path)
}

// terminate ends a process that nobody will hear of.
func terminate(process *libcontainer.Process) error {
	if err := process.Signal(unix.SIGKILL); err != nil {
		return err
	}
	_, _ = process.Wait() // its status is the signal
	return nil
}
