package runtime

import (
	"errors"
	"os"

	"github.com/containerd/console"
	"golang.org/x/sys/unix"

	"clove.run/clove/internal/descriptor"
	"clove.run/clove/internal/initproto"
)

// terminal joins the user's terminal with the agent's pty. The user's is raw
// meanwhile: ^C and ^Z travel as bytes, and the agent's own line discipline
// makes signals of them.
type terminal struct {
	master *os.File
	own    console.Console // nil when clove's input is no terminal
}

// terminalSize is the user's window, or 0 by 0 without one.
func terminalSize(stdin *os.File) *initproto.Terminal {
	size := &initproto.Terminal{}
	if own, err := console.ConsoleFromFile(stdin); err == nil {
		if window, err := own.Size(); err == nil {
			size.Rows, size.Columns = window.Height, window.Width
		}
	}
	return size
}

// joinTerminal begins to copy both ways.
func joinTerminal(master *os.File, pipes *streams, user IO) *terminal {
	t := &terminal{master: master}
	if own, err := console.ConsoleFromFile(user.Stdin); err == nil && makeRaw(own) == nil {
		t.own = own
	}
	t.resize()
	// Without an open slave the terminal would hang up, with a SIGHUP, on a process that
	// closes its streams before it ends, as cat does.
	if slave, err := PTYPeer(master); err == nil { // it is a pty, clove-init made it
		pipes.agentSide = append(pipes.agentSide, slave)
	}
	pipes.pump(user.display(user.Stdout), master, func() {})
	go typeInput(t, user, pipes.stopped)
	return t
}

// PTYPeer opens the other side of the pty whose master is given, whatever is mounted at
// /dev/pts. It does not become a controlling terminal by that.
func PTYPeer(master *os.File) (peer *os.File, err error) {
	err = descriptor.Use(master, func(fd int) error {
		number, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.TIOCGPTPEER, unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC)
		if errno != 0 {
			return errno
		}
		peer = os.NewFile(number, "pty")
		return nil
	})
	return peer, err
}

// makeRaw also turns off the output processing that the library leaves on: the
// agent's own line discipline has done it, and a second carriage return for
// each line would spoil what full-screen programs draw.
func makeRaw(own console.Console) error {
	if err := own.SetRaw(); err != nil {
		return err
	}
	mode, err := unix.IoctlGetTermios(int(own.Fd()), unix.TCGETS)
	if err == nil {
		mode.Oflag &^= unix.OPOST
		err = unix.IoctlSetTermios(int(own.Fd()), unix.TCSETS, mode)
	}
	if err != nil {
		return errors.Join(err, own.Reset())
	}
	return nil
}

// resize gives the pty the size of the user's window; the kernel then sends the agent
// SIGWINCH.
func (t *terminal) resize() {
	if t == nil || t.own == nil {
		return
	}
	window, err := t.own.Size()
	if err != nil {
		return // a window without a size leaves the old one
	}
	t.fit(window)
}

// shrink takes a row away, so that the next resize is a change.
func (t *terminal) shrink() {
	if t == nil || t.own == nil {
		return
	}
	if window, err := t.own.Size(); err == nil && window.Height > 1 {
		window.Height--
		t.fit(window)
	}
}

func (t *terminal) fit(window console.WinSize) {
	// Not with the library: pump closes the master meanwhile, and its number may be another file's then.
	_ = descriptor.Use(t.master, func(fd int) error {
		return unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: window.Height, Col: window.Width})
	})
}

// restore gives the user's terminal back as it was.
func (t *terminal) restore() {
	if t != nil && t.own != nil {
		_ = t.own.Reset() // the terminal may be gone; so is its reader
	}
}

// endOfFile means the end of input to a terminal's line discipline (VEOF, termios(3)).
const endOfFile = 0x04

// typeInput passes the user's input on. A pipe or file that ends must be seen
// to end inside, as the user's own terminal would show it; the terminal itself
// ends only with its window.
func typeInput(t *terminal, user IO, stopped *os.File) {
	if stopped != nil {
		defer stopped.Close()
	}
	copyInput(t.master, user.Stdin, stopped, user.Keyboard)
	if t.own == nil {
		_, _ = t.master.Write([]byte{endOfFile}) // the agent may be gone already
	}
}
