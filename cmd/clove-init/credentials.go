package main

import (
	"unsafe"

	"golang.org/x/sys/unix"

	"clove.run/clove/internal/initproto"
)

// raw is a system call on this thread only: those of x/sys and syscall change every thread of the process by
// signals. Only the thread that executes the agent matters here.
func raw(trap, a1, a2, a3 uintptr) error {
	if _, _, errno := unix.RawSyscall(trap, a1, a2, a3); errno != 0 {
		return errno
	}
	return nil
}

// setGroups replaces PID 1's supplementary groups. An empty list is a null pointer: there
// is no first element whose address could be taken.
func setGroups(orders *initproto.Orders) error {
	var list unsafe.Pointer
	if len(orders.Groups) > 0 {
		list = unsafe.Pointer(&orders.Groups[0])
	}
	return raw(unix.SYS_SETGROUPS, uintptr(len(orders.Groups)), uintptr(list), 0)
}

// setGID sets the real, effective and saved id: a saved one that stayed could be taken
// back.
func setGID(orders *initproto.Orders) error {
	gid := uintptr(orders.GID)
	return raw(unix.SYS_SETRESGID, gid, gid, gid)
}

// setUID changes the user id only. A process that leaves id 0 would lose its capabilities,
// one that leaves another id would not (capabilities(7)). PR_SET_KEEPCAPS keeps them in
// both cases, and setCapabilities, which follows, alone decides which remain.
func setUID(orders *initproto.Orders) error {
	if err := unix.Prctl(unix.PR_SET_KEEPCAPS, 1, 0, 0, 0); err != nil {
		return err
	}
	uid := uintptr(orders.UID)
	return raw(unix.SYS_SETRESUID, uid, uid, uid)
}

// words splits capability numbers into the kernel's two 32-bit words.
func words(orders *initproto.Orders) (set [2]uint32) {
	for _, name := range orders.Caps {
		number, _ := initproto.CapabilityNumber(name) // Validate knows it
		set[number/32] |= 1 << (number % 32)
	}
	return set
}

// dropBounding reduces the bounding set to the agent's capabilities: execve(2) of a
// set-user-ID-root program or of a file with capabilities cannot give more than this set.
// EINVAL ends the loop at the kernel's last capability, which this build may not know.
func dropBounding(orders *initproto.Orders) error {
	keep := words(orders)
	// 64 is what the two words of the kernel's capability sets can hold.
	for number := range uintptr(64) {
		if keep[number/32]&(1<<(number%32)) != 0 {
			continue
		}
		held, err := unix.PrctlRetInt(unix.PR_CAPBSET_READ, number, 0, 0, 0)
		if err == unix.EINVAL {
			return nil
		}
		if err == nil && held == 1 {
			err = unix.Prctl(unix.PR_CAPBSET_DROP, number, 0, 0, 0)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// setCapabilities sets the permitted, effective, inheritable and ambient sets to exactly
// the agent's. Without the ambient set, execve(2) by a user other than root would clear
// them.
func setCapabilities(orders *initproto.Orders) error {
	set := words(orders)
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	data := [2]unix.CapUserData{}
	for i, word := range set {
		data[i] = unix.CapUserData{Effective: word, Permitted: word, Inheritable: word}
	}
	if err := unix.Capset(&header, &data[0]); err != nil {
		return err
	}
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return err
	}
	for _, name := range orders.Caps {
		number, _ := initproto.CapabilityNumber(name)
		if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_RAISE, uintptr(number), 0, 0); err != nil {
			return at(name, err)
		}
	}
	return nil
}

// permitted lists the numbers of this thread's permitted capabilities.
func permitted() ([]uintptr, error) {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	data := [2]unix.CapUserData{}
	if err := unix.Capget(&header, &data[0]); err != nil {
		return nil, err
	}
	var held []uintptr
	for number := range uintptr(64) {
		if data[number/32].Permitted&(1<<(number%32)) != 0 {
			held = append(held, number)
		}
	}
	return held, nil
}
