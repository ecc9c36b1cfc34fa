package agent

import (
	"fmt"
	"net/netip"
	"slices"
)

// HostName is an additional line of the agent's /etc/hosts. It allows nothing: only the
// egress rules say what the agent may reach, and they judge the address.
type HostName struct {
	Name    string     `json:"name"`
	Address netip.Addr `json:"address"`
}

// AllCapabilities in Spec.CapDrop drops every capability.
const AllCapabilities = "ALL"

// Capabilities are the names of capabilities(7) that can be dropped.
var Capabilities = []string{
	"CAP_AUDIT_CONTROL", "CAP_AUDIT_READ", "CAP_AUDIT_WRITE", "CAP_BLOCK_SUSPEND", "CAP_BPF", "CAP_CHECKPOINT_RESTORE", "CAP_CHOWN",
	"CAP_DAC_OVERRIDE", "CAP_DAC_READ_SEARCH", "CAP_FOWNER", "CAP_FSETID", "CAP_IPC_LOCK", "CAP_IPC_OWNER", "CAP_KILL", "CAP_LEASE",
	"CAP_LINUX_IMMUTABLE", "CAP_MAC_ADMIN", "CAP_MAC_OVERRIDE", "CAP_MKNOD", "CAP_NET_ADMIN", "CAP_NET_BIND_SERVICE", "CAP_NET_BROADCAST",
	"CAP_NET_RAW", "CAP_PERFMON", "CAP_SETFCAP", "CAP_SETGID", "CAP_SETPCAP", "CAP_SETUID", "CAP_SYSLOG", "CAP_SYS_ADMIN", "CAP_SYS_BOOT",
	"CAP_SYS_CHROOT", "CAP_SYS_MODULE", "CAP_SYS_NICE", "CAP_SYS_PACCT", "CAP_SYS_PTRACE", "CAP_SYS_RAWIO", "CAP_SYS_RESOURCE", "CAP_SYS_TIME",
	"CAP_SYS_TTY_CONFIG", "CAP_WAKE_ALARM",
}

// SIGKILL and SIGSTOP cannot be caught (signal(7)), so a program cannot react to them by
// ending itself.
const (
	signalKill = 9
	signalStop = 19
	signalMost = 64
)

// checkProcess rejects unknown capabilities, stop signals that no program can catch, and
// lines that /etc/hosts cannot have.
func checkProcess(s Spec) error {
	for _, name := range s.CapDrop {
		if name != AllCapabilities && !slices.Contains(Capabilities, name) {
			return wrong("cap_drop", "write ALL, or a name of capabilities(7) such as CAP_CHOWN", "%.64q is not a capability", name)
		}
	}
	if n := s.Limits.StopSignal; n < 0 || n > signalMost || n == signalKill || n == signalStop {
		return wrong("limits.stop_signal", "name one that a program can handle, for example INT", "signal %d cannot ask a program to end", n)
	}
	if len(s.CapDrop) > len(Capabilities) {
		return wrong("cap_drop", "name each capability once", "the list has more names than there are capabilities")
	}
	if len(s.Hosts) > entriesMost {
		return wrong("hosts", fmt.Sprintf("use at most %d", entriesMost), "there are too many")
	}
	for _, h := range s.Hosts {
		if !IsHostname(h.Name) || !h.Address.IsValid() || h.Address.Zone() != "" {
			return wrong("hosts", "give a name and an address", "%.64q at %s is no line of /etc/hosts", h.Name, h.Address)
		}
	}
	return nil
}

// CheckExec rejects an exec that would have more rights than the agent: an agent that is
// not root must not get a process that is.
func (s Spec) CheckExec(e Exec) error {
	switch u := e.User; {
	case u == nil:
		return nil
	case u.UID > MaxUser || u.GID > MaxUser:
		return wrong("exec.user", fmt.Sprintf("use ids from 0 to %d", MaxUser), "a process cannot have the user and group %d:%d", u.UID, u.GID)
	case s.User.UID != 0 && (u.UID == 0 || u.GID == 0):
		return wrong("exec.user", "start the agent itself with --user root", "the agent does not run as root, and no process in its sandbox may have more rights")
	}
	return nil
}
