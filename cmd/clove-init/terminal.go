package main

import (
	"fmt"
	"os"

	"clove.run/clove/internal/initproto"
	"golang.org/x/sys/unix"
)

// openTerminal makes a pty of the sandbox's own devpts and gives its slave to
// the agent. The slave comes from the master and not from a name, so nothing
// that is mounted over /dev/pts can stand in for it.
func openTerminal(orders *initproto.Orders) (master *os.File, slave int, err error) {
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, -1, fmt.Errorf("cannot open /dev/ptmx: %w", err)
	}
	master = os.NewFile(uintptr(fd), "/dev/ptmx")
	if slave, err = openSlave(fd, orders); err != nil {
		master.Close()
		return nil, -1, err
	}
	return master, slave, nil
}

func openSlave(master int, orders *initproto.Orders) (int, error) {
	if err := unix.IoctlSetPointerInt(master, unix.TIOCSPTLCK, 0); err != nil {
		return -1, fmt.Errorf("cannot unlock pty: %w", err)
	}
	slave, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(master), unix.TIOCGPTPEER,
		unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC)
	if errno != 0 {
		return -1, fmt.Errorf("cannot open pty's slave: %w", errno)
	}
	size := unix.Winsize{Row: orders.Terminal.Rows, Col: orders.Terminal.Columns}
	err := unix.IoctlSetWinsize(master, unix.TIOCSWINSZ, &size)
	if err == nil {
		err = unix.Fchmod(int(slave), 0o620) // before the owner changes: only owners may
	}
	if err == nil {
		err = unix.Fchown(int(slave), int(orders.UID), -1) // the group is devpts's own choice
	}
	if err != nil {
		unix.Close(int(slave))
		return -1, fmt.Errorf("cannot prepare pty: %w", err)
	}
	return int(slave), nil
}
