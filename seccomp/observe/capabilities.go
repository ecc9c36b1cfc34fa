package observe

import (
	"encoding/binary"
	"slices"

	"golang.org/x/sys/unix"

	"clove.run/clove/seccomp/notify"
)

// kept is what a call takes for "as it is".
const kept = ^uint32(0)

// capabilityCall says which capability a call needs; needs is not called if the caller has it. ids
// are the arguments, as ids of the host; kept stays.
type capabilityCall struct {
	capability int
	name       string
	ids        []int // indexes of arguments that are ids
	needs      func(c caller, ids []uint32) bool
}

// otherUser: a user's id can be changed to one that the thread has already.
func otherUser(c caller, ids []uint32) bool { return outside(ids, c.uids[:]) }

func otherGroup(c caller, ids []uint32) bool { return outside(ids, c.gids[:]) }

func outside(ids, own []uint32) bool {
	return slices.ContainsFunc(ids, func(id uint32) bool { return id != kept && !slices.Contains(own, id) })
}

func anything(caller, []uint32) bool { return true }

// otherOwner: without the capability, a caller gives a file to no other user, and only to its own groups.
func otherOwner(c caller, ids []uint32) bool {
	return ids[0] != kept && ids[0] != c.uids[3] || ids[1] != kept && !c.inGroup(ids[1])
}

var (
	chowns = func(ids ...int) capabilityCall {
		return capabilityCall{unix.CAP_CHOWN, "CAP_CHOWN", ids, otherOwner}
	}
	users = func(ids ...int) capabilityCall {
		return capabilityCall{unix.CAP_SETUID, "CAP_SETUID", ids, otherUser}
	}
	groups = func(ids ...int) capabilityCall {
		return capabilityCall{unix.CAP_SETGID, "CAP_SETGID", ids, otherGroup}
	}
)

// capabilityCalls are those that programs make and the filters allow. A call that a filter
// refuses, such as mount and sethostname, is found as a refused call.
var capabilityCalls = map[string]capabilityCall{
	"chown": chowns(1, 2), "lchown": chowns(1, 2), "fchown": chowns(1, 2), "fchownat": chowns(2, 3),
	"setuid": users(0), "setreuid": users(0, 1), "setresuid": users(0, 1, 2),
	"setgid": groups(0), "setregid": groups(0, 1), "setresgid": groups(0, 1, 2),
	"setgroups": {unix.CAP_SETGID, "CAP_SETGID", nil, anything},
	"bind":      {unix.CAP_NET_BIND_SERVICE, "CAP_NET_BIND_SERVICE", nil, nil},
}

// Capabilities says which capability a call needs that its thread lacks. hostID is the host's
// id of the sandbox's id 0, lowestPort the first port that needs no capability.
func Capabilities(from *notify.Listener, call notify.Call, name string, hostID uint32, lowestPort uint16) []Finding {
	of, known := capabilityCalls[name]
	if !known {
		return nil
	}
	if of.needs == nil && !lowPort(from, call, lowestPort) {
		return nil // without a look at the thread, which takes much longer
	}
	c, err := callerOf(call.Thread)
	switch {
	case err != nil || c.has(of.capability) || !from.Valid(call):
		return nil
	case of.needs == nil:
		return []Finding{{Target: of.name, Errno: unix.EACCES}}
	case !of.needs(c, of.idsOf(call, hostID)):
		return nil
	}
	return []Finding{{Target: of.name, Errno: unix.EPERM}}
}

// idsOf are the call's ids, as the host's.
func (of capabilityCall) idsOf(call notify.Call, hostID uint32) []uint32 {
	var ids []uint32
	for _, i := range of.ids {
		id := uint32(call.Args[i])
		if id != kept {
			id += hostID
		}
		ids = append(ids, id)
	}
	return ids
}

// lowPort reports whether bind(2) is asked for a port below the lowest.
func lowPort(from *notify.Listener, call notify.Call, lowest uint16) bool {
	const familyAndPort = 4
	address, err := from.Bytes(call, call.Args[1], familyAndPort)
	if err != nil || len(address) < familyAndPort {
		return false
	}
	family, port := binary.NativeEndian.Uint16(address), binary.BigEndian.Uint16(address[2:])
	return (family == unix.AF_INET || family == unix.AF_INET6) && port > 0 && port < lowest
}
