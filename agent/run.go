package agent

import "time"

// Run is what the store keeps of one run, from its first moment on.
type Run struct {
	Spec    Spec       `json:"spec"`
	State   State      `json:"state"`
	Owner   Owner      `json:"owner,omitzero"`
	Queue   QueueState `json:"turn,omitzero"`
	Created time.Time  `json:"created"`
	Started time.Time  `json:"started,omitzero"` // when the agent first executed
	Lease   *Lease     `json:"lease,omitempty"`  // nil once released
	PID     int        `json:"pid,omitempty"`    // host pid of clove-init, while running
	Layer   string     `json:"layer,omitempty"`  // kept writable layer: path of its image; empty: none
	Record  *Record    `json:"record,omitempty"` // set when State is StateEnded
	// Previous is the record of the time before, of a run that was restarted.
	Previous *Record `json:"previous,omitempty"`
	// Container is set where the record is that of an engine's container. Such a
	// run has ended, has no layer and no log, and never starts.
	Container *Container `json:"container,omitempty"`
	// Parent is the run whose agent started this one; empty: a person did. Only
	// cloved will set it, from the socket that asked: a caller cannot name one.
	Parent ID `json:"parent,omitempty"`
}

// Lease is what a live run owns on this host.
type Lease struct {
	IDRange       int    `json:"id_range"`       // index of the range of host ids
	BootID        string `json:"boot_id"`        // /proc/sys/kernel/random/boot_id: another boot, nothing can live
	SupervisorPID int    `json:"supervisor_pid"` // for people; liveness is the lock in the run directory
	// Cgroups are the agent's cgroups: controller (v1) or "" (v2) to the
	// directory's path below that hierarchy's mount point.
	Cgroups map[string]string `json:"cgroups"`
}

// FirstHostID is the first host id that leases use: systemd's table of ids
// (UIDS-GIDS.md) leaves 0x70000000 to 0x7FFDFFFF unused by everyone.
// The last range is for the gates: one id each, which no agent maps.
const (
	FirstHostID = 0x70000000
	IDRanges    = (0x7FFE0000-0x70000000)/IDsPerAgent - 1
)

// HostID returns the host id of id 0 inside the sandbox.
func (l Lease) HostID() uint32 { return FirstHostID + uint32(l.IDRange)*IDsPerAgent }

// GuardGateID returns the host id of the gate of a guard, which has no lease:
// of those of the last range that no lease means, by the guard's process.
// Another guard may have the same one, and they share a limit of processes.
func GuardGateID(pid int) uint32 {
	return FirstHostID + IDRanges*IDsPerAgent + IDRanges + uint32(pid)%(IDsPerAgent-IDRanges)
}

// GateID returns the host id that the agent's gate runs as, user and group.
func (l Lease) GateID() uint32 { return FirstHostID + IDRanges*IDsPerAgent + uint32(l.IDRange) }
