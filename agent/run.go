package agent

import "time"

// Run is what the store keeps of one run from its creation on.
type Run struct {
	Spec  Spec  `json:"spec"`
	State State `json:"state"`
	Owner Owner `json:"owner,omitzero"`
	// CallerRlimits are the resource limits of the process that requested the run, where the
	// run has commands for the host (Kernel.HasCommands). cloved sets them; none: its own.
	CallerRlimits []Rlimit   `json:"caller_rlimits,omitempty"`
	Queue         QueueState `json:"turn,omitzero"`
	Created       time.Time  `json:"created"`
	Started       time.Time  `json:"started,omitzero"` // when the agent first executed
	Lease         *Lease     `json:"lease,omitempty"`  // nil once released
	PID           int        `json:"pid,omitempty"`    // host pid of clove-init, while running
	Layer         string     `json:"layer,omitempty"`  // kept writable layer: path of its image; empty: none
	Record        *Record    `json:"record,omitempty"` // set when State is StateEnded
	// Previous is the record of the last time, where the run was restarted.
	Previous *Record `json:"previous,omitempty"`
	// Container is set where this is the record of an OCI container. Such a run is always
	// ended, has no layer and no log, and never starts.
	Container *Container `json:"container,omitempty"`
	// Parent is the run whose agent started this one; empty: a person did. Only
	// cloved will set it, from the socket that asked: a caller cannot name one.
	Parent ID `json:"parent,omitempty"`
	// Above are the runs above it, its parent first, as they were when it was started; empty: a
	// person started it. It spends from their accounts, and its cgroup is below theirs.
	Above []Ancestor `json:"above,omitempty"`
	// Executes are the files of the host that its agent executes, where an agent started it. It does not start
	// while one of them is another.
	Executes []ManifestFile `json:"executes,omitempty"`
	// Deadline is when it ends at the latest, whatever its own limit is: its parent does; zero: never.
	Deadline time.Time `json:"deadline,omitzero"`
}

// Ancestor is a run above another, with its names when the other was started.
type Ancestor struct {
	ID        ID     `json:"id"`
	Name      string `json:"name"`
	Namespace string `json:"namespace,omitempty"`
	Depth     int    `json:"depth,omitempty"` // its Kernel.SpawnDepth
}

// Under is the list of runs above a child of this run.
func (r Run) Under() []Ancestor {
	own := Ancestor{ID: r.Spec.ID, Name: r.Spec.Name, Namespace: r.Spec.Kernel.Namespace, Depth: r.Spec.Kernel.SpawnDepth}
	return append([]Ancestor{own}, r.Above...)
}

// Lease is what a live run holds on this host. Decision 5 (docs/decisions) says why each
// run has a range of host ids of its own.
type Lease struct {
	IDRange       int    `json:"id_range"`       // index of the range of host ids
	BootID        string `json:"boot_id"`        // /proc/sys/kernel/random/boot_id: no run survives into another boot
	SupervisorPID int    `json:"supervisor_pid"` // for display; the lock in the run directory proves liveness
	// Cgroups are the agent's cgroups: from the controller (v1) or "" (v2) to the path
	// below that hierarchy's mount point.
	Cgroups map[string]string `json:"cgroups"`
}

// FirstHostID is the first host id of the leases. systemd's table of ids (UIDS-GIDS.md)
// leaves 0x70000000 to 0x7FFDFFFF unused. The last range is reserved for gates and other
// processes without rights: one id for each, which no agent's user namespace maps. Its second
// half is for those that outlast their starter.
const (
	FirstHostID = 0x70000000
	IDRanges    = (0x7FFE0000-0x70000000)/IDsPerAgent - 1
)

// HostID returns the host id of id 0 inside the sandbox.
func (l Lease) HostID() uint32 { return FirstHostID + uint32(l.IDRange)*IDsPerAgent }

// GuardGateID returns the host id of the gate of a guard. A guard has no lease, so it takes
// an id of the last range that no lease's gate uses, derived from the guard's pid. Two
// guards may get the same id: they then share one RLIMIT_NPROC.
func GuardGateID(pid int) uint32 {
	return FirstHostID + IDRanges*IDsPerAgent + IDRanges + uint32(pid)%(IDsPerAgent/2-IDRanges)
}

// ServiceID returns the host id of the number-th process without rights that a process
// starts for itself, as GuardGateID does for a guard's gate.
func ServiceID(pid, number int) uint32 { return GuardGateID(pid + number*serviceStride) }

// LastingID is ServiceID for a process that goes on when its starter is gone.
func LastingID(pid, number int) uint32 {
	return FirstHostID + IDRanges*IDsPerAgent + IDsPerAgent/2 + uint32(pid+number*serviceStride)%(IDsPerAgent/2)
}

// serviceStride keeps the processes of neighbouring pids apart. It is a prime.
const serviceStride = 4099

// GateID returns the host id, user and group, that the agent's gate runs as.
func (l Lease) GateID() uint32 { return FirstHostID + IDRanges*IDsPerAgent + uint32(l.IDRange) }
