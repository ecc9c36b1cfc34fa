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

// principal is the identity that access rules check: a user, or an agent. Rules ask root
// and never owner.UID: root's agent has root as its owner.
type principal struct {
	owner agent.Owner // the user, or the owner of the agent's run
	run   agent.ID    // the agent's run; empty: it is a user
}

// isAgent reports whether the principal is a process of a sandbox.
func (p principal) isAgent() bool { return p.run != "" }

// root reports whether the principal sees and may do everything. An agent never may,
// not even one of root's: its instructions can come from any web page that it reads.
func (p principal) root() bool { return p.owner.UID == 0 && !p.isAgent() }

// covers reports whether a run exists to the principal.
func (p principal) covers(run agent.ID, owner agent.Owner) bool {
	if p.isAgent() {
		return run == p.run
	}
	return p.root() || owner.UID == p.owner.UID
}

// sees is covers for a run that is known.
func (p principal) sees(run *agent.Run) bool { return p.covers(run.Spec.ID, run.Owner) }

// caller is the principal at the other end of a connection, as the kernel says.
type caller struct {
	principal
	groups []uint32
	pid    int
	name   string // of what cloved itself acts for; empty: a process called
}

// identity is the caller for a thread that acts in its place.
func (c caller) identity() nsthread.Identity {
	return nsthread.Identity{UID: c.owner.UID, GID: c.owner.GID, Groups: c.groups}
}

// member reports whether the caller may connect at all. An agent may not, whatever the
// groups of its run's owner are.
func (c caller) member(group int) bool {
	if c.isAgent() {
		return false
	}
	return c.root() || group >= 0 && (c.owner.GID == uint32(group) || slices.Contains(c.groups, uint32(group)))
}

// String names the caller in logs and events: the user, and which of the user's processes; or what cloved acts for.
func (c caller) String() string {
	if c.name != "" {
		return c.name
	}
	return fmt.Sprintf("uid %d, process %d", c.owner.UID, c.pid)
}

// soPeerGroups is a socket option of socket(7), SO_PEERGROUPS since Linux 4.13, that x/sys
// has no call for.
const soPeerGroups = 59

// peerOf returns the identity of the process that connected. The credentials are those of the
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
		return c, fmt.Errorf("cannot identify the caller: %w", err)
	}
	return c, nil
}

// peerGroups returns the supplementary groups.
func peerGroups(fd uintptr) ([]uint32, error) {
	// Enough for most users; for others the kernel says how many there are.
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
