package daemon

import (
	"fmt"
	"net"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/internal/nsthread"
)

// caller is who is at the other end of a connection, as the kernel says.
type caller struct {
	owner  agent.Owner
	groups []uint32
	pid    int
}

// root sees and may do everything.
func (c caller) root() bool { return c.owner.UID == 0 }

// identity is the caller for a thread that acts in its place.
func (c caller) identity() nsthread.Identity {
	return nsthread.Identity{UID: c.owner.UID, GID: c.owner.GID, Groups: c.groups}
}

// sees tells whether the run exists to the caller.
func (c caller) sees(run *agent.Run) bool { return c.root() || run.Owner.UID == c.owner.UID }

// member tells whether the caller may connect at all.
func (c caller) member(group int) bool {
	return c.root() || group >= 0 && (c.owner.GID == uint32(group) || slices.Contains(c.groups, uint32(group)))
}

func (c caller) String() string {
	return fmt.Sprintf("uid %d, process %d", c.owner.UID, c.pid)
}

// soPeerGroups is a socket option of socket(7) that x/sys has no call for.
const soPeerGroups = 59

// peerOf asks the kernel who connected. The credentials are those of the
// moment of connect(2); the groups too.
func peerOf(conn *net.UnixConn) (caller, error) {
	var c caller
	raw, err := conn.SyscallConn()
	if err != nil {
		return c, err
	}
	cerr := raw.Control(func(fd uintptr) {
		var peer *unix.Ucred
		if peer, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED); err != nil {
			return
		}
		c.owner, c.pid = agent.Owner{UID: peer.Uid, GID: peer.Gid}, int(peer.Pid)
		c.groups, err = peerGroups(fd)
	})
	if cerr != nil {
		err = cerr
	}
	if err != nil {
		return c, fmt.Errorf("cannot tell who connected: %w", err)
	}
	return c, nil
}

// peerGroups returns the supplementary groups.
func peerGroups(fd uintptr) ([]uint32, error) {
	groups := make([]uint32, 64)
	for {
		size := uint32(len(groups) * 4)
		_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, fd, unix.SOL_SOCKET, soPeerGroups,
			uintptr(unsafe.Pointer(&groups[0])), uintptr(unsafe.Pointer(&size)), 0)
		switch errno {
		case 0:
			return groups[:size/4], nil
		case unix.ERANGE: // size says how many there are
			groups = make([]uint32, size/4+1)
		default:
			return nil, errno
		}
	}
}
