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

// terminal connects the caller's terminal with the process's, as long as this program stays
// in the foreground.
type terminal struct {
	host   console.Console // raw during the session: the terminal inside decides what ^C means
	waits  bool            // the process executes nothing until attach has returned
	socket *os.File        // libcontainer sends the master through it
	master *os.File
	pty    console.Console
}

// newTerminal needs a terminal of the caller's. The process's terminal has its size from
// the beginning, because a program may ask before attach. theirs is passed to the process.
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

// hostConsole is the first of the standard streams that is a terminal, because any of them
// may be redirected, or else the controlling terminal.
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

// attach takes over the master from a process that has started.
func (t *terminal) attach() error {
	fd, err := receive(t.socket)
	if err != nil {
		return fmt.Errorf("cannot have the container's terminal: %w", err)
	}
	// A non-blocking descriptor is watched by Go's poller, so that stop can end a read by a
	// deadline.
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
	// Nothing waits for this goroutine: it ends with the caller's input, or with this
	// program.
	go func() { _, _ = io.Copy(t.master, os.Stdin) }()
	return nil
}

// setModes makes the caller's terminal raw. One of the two terminals has to add carriage
// returns. For the first process that is the caller's, as with runc, so that redirected
// output has none. A process of exec may have written already when its terminal arrives
// here, so there its own terminal keeps adding them.
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

// receive reads one descriptor. libcontainer sends the terminal's name with it.
func receive(socket *os.File) (int, error) {
	_, fds, err := passfd.Receive(socket, make([]byte, 4096), 1)
	if err != nil || len(fds) != 1 {
		return -1, errors.Join(errors.New("no descriptor came"), err)
	}
	return fds[0], nil
}

// pump copies the process's output until the last process has closed the terminal. After
// stop it still copies what is there: the process wrote it before it ended.
func (t *terminal) pump() {
	_, _ = io.Copy(os.Stdout, t.master)
	raw, err := t.master.SyscallConn()
	if err != nil {
		return
	}
	// The deadline has ended io.Copy for good, so the rest is read from the descriptor
	// itself.
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

// stop ends pump even if a process that outlives the first one keeps the terminal open.
func (t *terminal) stop() {
	if t.master != nil {
		_ = t.master.SetReadDeadline(time.Unix(1, 0))
	}
}

// close restores the caller's terminal.
func (t *terminal) close() {
	_ = t.socket.Close()
	if t.master != nil {
		_ = t.master.Close()
	}
	_ = t.host.Reset()
}

func (t *terminal) resize() {
	if t.pty != nil {
		_ = t.pty.ResizeFrom(t.host) // a terminal without a size changes nothing
	}
}
