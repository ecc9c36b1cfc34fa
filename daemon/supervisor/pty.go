package supervisor

import (
	"os"

	"golang.org/x/sys/unix"

	"clove.run/clove/runtime"
)

// openPTY opens a pair as pts(4) describes. It is raw from the beginning: the agent
// interprets text that is typed before runtime has looked at it, also an end of input.
func openPTY() (master, slave *os.File, err error) {
	// Non-blocking, so that closing it ends a read.
	master, err = os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	// A new pty is locked: its slave cannot be opened before this (pts(4)).
	if err := unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		master.Close()
		return nil, nil, err
	}
	if slave, err = runtime.PTYPeer(master); err != nil {
		master.Close()
		return nil, nil, err
	}
	mode, err := unix.IoctlGetTermios(int(slave.Fd()), unix.TCGETS)
	if err == nil {
		MakeRaw(mode)
		err = unix.IoctlSetTermios(int(slave.Fd()), unix.TCSETS, mode)
	}
	if err != nil {
		master.Close()
		slave.Close()
		return nil, nil, err
	}
	return master, slave, nil
}

// MakeRaw is cfmakeraw(3).
func MakeRaw(t *unix.Termios) {
	t.Iflag &^= unix.IGNBRK | unix.BRKINT | unix.PARMRK | unix.ISTRIP | unix.INLCR | unix.IGNCR | unix.ICRNL | unix.IXON
	t.Oflag &^= unix.OPOST
	t.Lflag &^= unix.ECHO | unix.ECHONL | unix.ICANON | unix.ISIG | unix.IEXTEN
	t.Cflag = t.Cflag&^(unix.CSIZE|unix.PARENB) | unix.CS8
	t.Cc[unix.VMIN], t.Cc[unix.VTIME] = 1, 0
}
