package container

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/containerd/console"
	"github.com/opencontainers/runc/libcontainer"
	"golang.org/x/sys/unix"

	"clove.run/clove/internal/passfd"
)

// terminal joins the caller's terminal with the process's, for as long as this
// program stays in the foreground.
type terminal struct {
	host   console.Console // raw meanwhile: what ^C means is decided inside
	waits  bool            // the process executes nothing until attach has returned
	socket *os.File        // the master comes through it
	master *os.File
	pty    console.Console
}

// newTerminal needs a terminal of the caller's, whose size the process's has from
// the beginning. The process's end of the socket is to be handed over.
func newTerminal(process *libcontainer.Process) (t *terminal, theirs *os.File, err error) {
	host, err := hostConsole()
	if err != nil {
		return nil, nil, err
	}
	if size, err := host.Size(); err == nil && size.Height != 0 && size.Width != 0 {
		process.ConsoleHeight, process.ConsoleWidth = size.Height, size.Width
	}
	socket, theirs, err := passfd.Pair(unix.SOCK_STREAM)
	if err != nil {
		return nil, nil, err
	}
	return &terminal{host: host, waits: process.Init, socket: socket}, theirs, nil
}

// hostConsole is the first of the streams that is a terminal: any of them may
// be redirected.
func hostConsole() (console.Console, error) {
	for _, stream := range []*os.File{os.Stderr, os.Stdout, os.Stdin} {
		found, err := console.ConsoleFromFile(stream)
		if err == nil || !errors.Is(err, console.ErrNotAConsole) {
			return found, err
		}
	}
	tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	if err != nil {
		return nil, fmt.Errorf("cannot find the terminal to show the container's in: %w", err)
	}
	return console.ConsoleFromFile(tty)
}

// attach takes over the master of a process that has started.
func (t *terminal) attach() error {
	fd, err := receive(t.socket)
	if err != nil {
		return fmt.Errorf("cannot have the container's terminal: %w", err)
	}
	// With it set, reads can be ended from outside.
	if err := unix.SetNonblock(fd, true); err != nil {
		unix.Close(fd)
		return os.NewSyscallError("fcntl", err)
	}
	t.master = os.NewFile(uintptr(fd), "ptmx")
	if t.pty, err = console.ConsoleFromFile(t.master); err != nil {
		return err
	}
	if err := t.setModes(); err != nil {
		return fmt.Errorf("failed to set the terminal from the stdin: %w", err)
	}
	t.resize()
	// Nothing waits for this one: it ends with the caller's input, or with this program.
	go func() { _, _ = io.Copy(t.master, os.Stdin) }()
	return nil
}

// setModes makes the caller's terminal raw and has one of the two add carriage returns:
// the caller's, as runc does it, so that what is redirected has none. A process that is
// executed in a container may write already, so there its own terminal goes on adding them.
func (t *terminal) setModes() error {
	if err := t.host.SetRaw(); err != nil {
		return err
	}
	if t.waits {
		return console.ClearONLCR(t.pty.Fd())
	}
	mode, err := unix.IoctlGetTermios(int(t.host.Fd()), unix.TCGETS)
	if err != nil {
		return err
	}
	mode.Oflag &^= unix.OPOST
	return unix.IoctlSetTermios(int(t.host.Fd()), unix.TCSETS, mode)
}

// receive reads one descriptor, and its name.
func receive(socket *os.File) (int, error) {
	_, fds, err := passfd.Receive(socket, make([]byte, 4096), 1)
	if err != nil || len(fds) != 1 {
		return -1, errors.Join(errors.New("no descriptor came"), err)
	}
	return fds[0], nil
}

// pump copies what the process writes until nobody has the terminal any more.
// When stop was called it still copies what is there: the process wrote it
// before it ended.
func (t *terminal) pump() {
	_, _ = io.Copy(os.Stdout, t.master)
	raw, err := t.master.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) {
		buffer := make([]byte, 4096)
		for {
			n, err := unix.Read(int(fd), buffer)
			if err == unix.EINTR {
				continue
			}
			if n <= 0 {
				return
			}
			_, _ = os.Stdout.Write(buffer[:n])
		}
	})
}

// stop ends pump even where a process that was left behind keeps the terminal.
func (t *terminal) stop() {
	if t.master != nil {
		_ = t.master.SetReadDeadline(time.Unix(1, 0))
	}
}

// close gives the caller its terminal back as it was.
func (t *terminal) close() {
	_ = t.socket.Close()
	if t.master != nil {
		_ = t.master.Close()
	}
	_ = t.host.Reset()
}

func (t *terminal) resize() {
	if t.pty != nil {
		_ = t.pty.ResizeFrom(t.host) // one without a size leaves the old one
	}
}
