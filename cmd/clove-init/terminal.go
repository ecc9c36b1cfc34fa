package main

import (
	"fmt"
	"os"

	"clove.run/clove/internal/initproto"
	"golang.org/x/sys/unix"
)

// openTerminal makes a pty of the sandbox's own devpts, makes its slave descriptors 0, 1
// and 2, and returns the master; nil where no terminal was requested.
func openTerminal(orders *initproto.Orders) (*os.File, error) {
	if orders.Terminal == nil {
		return nil, nil
	}
	master, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("cannot open /dev/ptmx: %w", err)
	}
	slave, err := openSlave(master, orders)
	if err != nil {
		return nil, err
	}
	for fd := range 3 {
		if err := unix.Dup3(slave, fd, 0); err != nil {
			return nil, fmt.Errorf("cannot use pty: %w", err)
		}
	}
	return os.NewFile(uintptr(master), "/dev/ptmx"), nil
}

// openSlave opens the slave through the master (TIOCGPTPEER) and not by name, so that
// nothing mounted over /dev/pts can replace it, and gives it to the agent.
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
		err = unix.Fchmod(int(slave), 0o620) // before the change of owner: only the owner may
	}
	if err == nil {
		err = unix.Fchown(int(slave), int(orders.UID), -1) // devpts sets the group
	}
	if err != nil {
		return -1, fmt.Errorf("cannot prepare pty: %w", err)
	}
	return int(slave), nil
}
