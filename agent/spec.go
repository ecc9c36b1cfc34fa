package agent

import (
	"cmp"
	"time"
)

// Spec is everything that was asked for one run, after defaults were merged. It is
// stored with the run and begins each of its starts: a default that changes later
// changes no run that exists. An update of a live run changes it here too.
type Spec struct {
	ID       ID                `json:"id"`
	Name     string            `json:"name"`
	Labels   map[string]string `json:"labels,omitempty"`
	Command  []string          `json:"command"`            // argv inside the sandbox
	Env      []string          `json:"env,omitempty"`      // KEY=VALUE, complete: nothing is inherited
	Dir      string            `json:"dir"`                // working directory inside the sandbox
	User     User              `json:"user"`               // who the agent is inside
	CapDrop  []string          `json:"cap_drop,omitempty"` // of those that root inside has: names of Capabilities, or AllCapabilities
	Hostname string            `json:"hostname,omitempty"` // empty: the ID
	Hosts    []HostName        `json:"hosts,omitempty"`    // more lines of /etc/hosts
	Terminal bool              `json:"terminal,omitempty"` // give the agent a pty
	Detached bool              `json:"detached,omitempty"` // nobody waits for it: its output goes to its log
	// Foreground: by cloved, it is started for one session (run.attach), which has its
	// streams, and ends with that session.
	Foreground bool     `json:"foreground,omitempty"`
	Stdin      bool     `json:"stdin,omitempty"`  // detached: keep its input open for clove attach
	Remove     bool     `json:"remove,omitempty"` // --rm: keep neither record nor layer
	Limits     Limits   `json:"limits"`
	Files      Files    `json:"files"`
	Seccomp    Seccomp  `json:"seccomp"`
	Network    string   `json:"network"` // one of NetworkModes
	Egress     Egress   `json:"egress"`
	Policy     Policy   `json:"policy"`
	Restart    Restart  `json:"restart,omitzero"`
	Schedule   string   `json:"schedule,omitempty"`   // start it at these times, as crontab(5) writes them
	KeepFiles  bool     `json:"keep_files,omitempty"` // each time of the schedule goes on with the layer of the one before
	After      []string `json:"after,omitempty"`      // runs, by name, that must have started first
	Priority   int      `json:"priority,omitempty"`   // among those that wait for memory: higher goes first
	// StartTimeout is how long a step of the start may make no progress; 0: StartBound says it.
	StartTimeout time.Duration `json:"start_timeout_ns,omitempty"`
	// AllowUnenforced lists the controls (Control* words) that may be weakened.
	AllowUnenforced []string `json:"allow_unenforced,omitempty"`
}

// startTimeout is far more than any step takes when two hundred start at once.
const startTimeout = 30 * time.Second

// StartBound is how long a step of the start may make no progress.
func (s Spec) StartBound() time.Duration { return cmp.Or(s.StartTimeout, startTimeout) }

// User is an identity inside the sandbox's own user namespace.
type User struct {
	Name string `json:"name"`
	UID  uint32 `json:"uid"` // 0 to MaxUser
	GID  uint32 `json:"gid"`
	Home string `json:"home"`
}

// Ids inside the sandbox. Each agent owns IDsPerAgent consecutive host ids;
// the sandbox's init has one of them to itself.
const (
	IDsPerAgent = 65536
	InitUID     = 65533 // clove-init; never the agent
	MaxUser     = 65532 // the largest id an agent may have
)

// Policy names the document that the defaults came from.
// SHA256 is of what it set, in hex: two records with the same one had
// the same defaults.
type Policy struct {
	Name   string `json:"name"`
	SHA256 string `json:"sha256"`
}

// Seccomp selects the system call filter. Profile is a built-in name or the
// path that Document was read from.
type Seccomp struct {
	Profile  string `json:"profile"`
	Document []byte `json:"document,omitempty"` // docker's JSON format; nil for a built-in
}

// SeccompUnconfined is the only word that runs an agent without a filter.
const SeccompUnconfined = "unconfined"

// Limits are what the kernel holds the agent to, all its processes together. Zero means "no limit" for
// WallClock, CPUTime, CPUs, CPUSet and OutputBytes; everything else is always set.
type Limits struct {
	MemoryBytes     int64         `json:"memory_bytes"`
	MemorySwapBytes int64         `json:"memory_swap_bytes"` // memory and swap together, as docker counts; equal to MemoryBytes: no swap
	CPUs            float64       `json:"cpus,omitempty"`    // CPU seconds per second
	CPUSet          string        `json:"cpuset_cpus,omitempty"`
	Pids            int64         `json:"pids"`
	Rlimits         []Rlimit      `json:"rlimits,omitempty"`
	CPUTime         time.Duration `json:"cpu_time_ns,omitempty"`   // of the whole tree
	WallClock       time.Duration `json:"wall_clock_ns,omitempty"` // on CLOCK_BOOTTIME, from the agent's start
	StopGrace       time.Duration `json:"stop_grace_ns"`           // between StopSignal and KILL
	StopSignal      int           `json:"stop_signal,omitempty"`   // asks the agent to end; 0: TERM
	OutputBytes     int64         `json:"output_bytes,omitempty"`  // stdout and stderr together
	DiskBytes       int64         `json:"disk_bytes"`              // the writable layer
	ShmBytes        int64         `json:"shm_bytes"`               // /dev/shm
}

// SocketBytes is how much sockets may hold that MemoryBytes does not count:
// netlink queues, and on cgroup v1 the buffers of TCP and UDP.
func (l Limits) SocketBytes() int64 { return l.MemoryBytes / 4 }

// RlimitInfinity is RLIM_INFINITY of getrlimit(2).
const RlimitInfinity = ^uint64(0)

// Rlimit is one resource limit of setrlimit(2). Name is docker's word for it:
// "nofile", "core", "stack", …
type Rlimit struct {
	Name string `json:"name"`
	Soft uint64 `json:"soft"`
	Hard uint64 `json:"hard"`
}

// Files says what the agent's root is made of.
type Files struct {
	Rootfs    string   `json:"rootfs,omitempty"`    // host directory that replaces the host base; empty: the host's own system
	Workspace string   `json:"workspace,omitempty"` // host directory that appears, copy on write, at WorkspaceDir; empty: an empty one
	ReadOnly  bool     `json:"read_only,omitempty"` // the root is read-only; workspace, /tmp, /dev/shm stay writable
	Prefixes  []string `json:"prefixes,omitempty"`  // host directories (interpreters) bound read-only at the same path
	Binds     []Bind   `json:"binds,omitempty"`
	Tmpfs     []Tmpfs  `json:"tmpfs,omitempty"`
}

// WorkspaceDir is where the workspace appears inside.
const WorkspaceDir = "/workspace"

// Bind is a host path that appears inside at Target. The host's files change.
// Of a run that another than root asked cloved for, it is opened with that user's rights.
type Bind struct {
	Source   string `json:"source"`
	Target   string `json:"target"`
	ReadOnly bool   `json:"read_only,omitempty"`
}

// Tmpfs is a private memory file system; its pages count as the agent's memory.
type Tmpfs struct {
	Target    string `json:"target"`
	SizeBytes int64  `json:"size_bytes,omitempty"` // 0: half of the memory limit
	Mode      uint32 `json:"mode,omitempty"`       // 0: 01777
}

// Controls are the words of enforced, unenforced and --allow-unenforced.
const (
	ControlMemory     = "memory"
	ControlMemorySwap = "memory-swap"
	ControlCPU        = "cpu"
	ControlCPUSet     = "cpuset"
	ControlSockets    = "sockets" // what sockets hold beside memory, see Limits.SocketBytes
	ControlPids       = "pids"
	ControlRlimits    = "rlimits"
	ControlCPUTime    = "cpu-time"
	ControlWallClock  = "wall-clock"
	ControlOutput     = "output"
	ControlDisk       = "disk"
	ControlShm        = "shm"
	ControlSeccomp    = "seccomp"
	ControlNetwork    = "network"
	ControlEgress     = "egress"
	ControlDevices    = "devices"
	ControlNamespaces = "namespaces"
)
