package supervisor

import (
	"os"

	"golang.org/x/sys/unix"
)

// openPTY opens a pair as pts(4) describes. It is raw from the beginning: what is typed
// before runtime has looked at it, an end of input among it, is the agent's to interpret.
func openPTY() (master, slave *os.File, err error) {
	// Non-blocking, so that closing it ends a read.
	master, err = os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	if slave, err = ptyPeer(master); err != nil {
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

// ptyPeer opens the slave through the master, whatever is mounted at /dev/pts.
func ptyPeer(master *os.File) (*os.File, error) {
	if err := unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		return nil, err
	}
	fd, _, errno := unix.Syscall(unix.SYS_IOCTL, master.Fd(), unix.TIOCGPTPEER, unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC)
	if errno != 0 {
		return nil, errno
	}
	return os.NewFile(fd, "pty"), nil
}

// MakeRaw is cfmakeraw(3).
func MakeRaw(t *unix.Termios) {
	t.Iflag &^= unix.IGNBRK | unix.BRKINT | unix.PARMRK | unix.ISTRIP | unix.INLCR | unix.IGNCR | unix.ICRNL | unix.IXON
	t.Oflag &^= unix.OPOST
	t.Lflag &^= unix.ECHO | unix.ECHONL | unix.ICANON | unix.ISIG | unix.IEXTEN
	t.Cflag = t.Cflag&^(unix.CSIZE|unix.PARENB) | unix.CS8
	t.Cc[unix.VMIN], t.Cc[unix.VTIME] = 1, 0
}
