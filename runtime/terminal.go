package runtime

import (
	"errors"
	"os"

	"github.com/containerd/console"
	"golang.org/x/sys/unix"

	"clove.run/clove/internal/initproto"
)

// terminal joins the user's terminal with the agent's pty. The user's is raw
// meanwhile: ^C and ^Z travel as bytes, and the agent's own line discipline
// makes signals of them.
type terminal struct {
	master *os.File
	pty    console.Console
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

// attachTerminal takes over the pty's master from clove-init.
func (s *supervisor) attachTerminal(master *os.File) {
	t := &terminal{master: master}
	s.terminal = t
	t.pty, _ = console.ConsoleFromFile(master) // it is a pty, clove-init made it
	if own, err := console.ConsoleFromFile(s.streams.Stdin); err == nil && makeRaw(own) == nil {
		t.own = own
	}
	s.resizeTerminal()
	s.pipes.pump(s.streams.Stdout, master)
	go typeInput(t, s.streams.Stdin)
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

// resizeTerminal gives the agent's pty the size of the user's window.
func (s *supervisor) resizeTerminal() {
	if t := s.terminal; t != nil && t.own != nil && t.pty != nil {
		_ = t.pty.ResizeFrom(t.own) // a window without a size leaves the old one
	}
}

func (s *supervisor) restoreTerminal() {
	if s.terminal != nil && s.terminal.own != nil {
		_ = s.terminal.own.Reset() // the terminal may be gone; so is its reader
	}
}

// endOfFile is what a terminal's line discipline takes for the end of input
// (VEOF, termios(3)).
const endOfFile = 0x04

// typeInput passes the user's input on. A pipe or file that ends must be seen
// to end inside, as the user's own terminal would show it; the terminal itself
// ends only with its window.
func typeInput(t *terminal, from *os.File) {
	copyInput(t.master, from)
	if t.own == nil {
		_, _ = t.master.Write([]byte{endOfFile}) // the agent may be gone already
	}
}
