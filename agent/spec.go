package agent

import (
	"cmp"
	"time"
)

// Spec is the complete request for one run, with defaults merged in. It is stored with the
// run and used at each start, so a later change of a default does not affect existing runs.
// Update changes it too.
type Spec struct {
	ID         ID                `json:"id"`
	Name       string            `json:"name"`
	Labels     map[string]string `json:"labels,omitempty"`
	Command    RawStrings        `json:"command"`                  // argv inside the sandbox
	Env        RawStrings        `json:"env,omitempty"`            // KEY=VALUE, complete: nothing is inherited
	Dir        string            `json:"dir"`                      // working directory inside the sandbox
	User       User              `json:"user"`                     // the agent's user inside the sandbox
	CapDrop    []string          `json:"cap_drop,omitempty"`       // capabilities that root inside the sandbox loses: names of Capabilities, or AllCapabilities
	Hostname   string            `json:"hostname,omitempty"`       // empty: the ID
	ClockStart time.Duration     `json:"clock_start_ns,omitempty"` // what CLOCK_MONOTONIC and CLOCK_BOOTTIME begin at inside; 0: they are the host's
	Hosts      []HostName        `json:"hosts,omitempty"`          // additional lines of /etc/hosts
	Terminal   bool              `json:"terminal,omitempty"`       // give the agent a pty
	Detached   bool              `json:"detached,omitempty"`       // no client waits for it; its output goes to the log
	// Foreground: cloved starts it for one session (run.attach). The session has its
	// streams, and the run ends with the session.
	Foreground bool     `json:"foreground,omitempty"`
	Stdin      bool     `json:"stdin,omitempty"`  // detached: keep stdin open for clove attach
	Remove     bool     `json:"remove,omitempty"` // --rm: keep neither record nor layer
	Limits     Limits   `json:"limits"`
	Files      Files    `json:"files"`
	Seccomp    Seccomp  `json:"seccomp"`
	Network    string   `json:"network"` // one of NetworkModes
	Egress     Egress   `json:"egress"`
	Kernel     Kernel   `json:"kernel,omitzero"`
	Policy     Policy   `json:"policy"`
	Manifest   Manifest `json:"manifest,omitzero"`
	Shadow     *Shadow  `json:"shadow,omitempty"` // decided and recorded beside Policy; nil: none
	Learn      bool     `json:"learn,omitempty"`  // note what the run uses, see Observed
	Restart    Restart  `json:"restart,omitzero"`
	Schedule   string   `json:"schedule,omitempty"`   // when to start it, in the format of crontab(5)
	KeepFiles  bool     `json:"keep_files,omitempty"` // each time of the schedule reuses the layer of the previous one
	After      []string `json:"after,omitempty"`      // runs that come first: NAME or NAME:CONDITION, see After
	Ready      Ready    `json:"ready,omitzero"`
	Priority   int      `json:"priority,omitempty"` // order among queued runs that wait for memory: higher first
	// StartTimeout bounds how long one launch step may make no progress; 0: see StartBound.
	StartTimeout time.Duration `json:"start_timeout_ns,omitempty"`
	// AllowUnenforced lists the controls (Control* words) that may be weakened.
	AllowUnenforced []string `json:"allow_unenforced,omitempty"`
}

// startTimeout is far above any step's time, even with two hundred starts at once.
const startTimeout = 30 * time.Second

// StartBound returns the bound on a launch step without progress.
func (s Spec) StartBound() time.Duration { return cmp.Or(s.StartTimeout, startTimeout) }

// User is an identity inside the sandbox's own user namespace.
type User struct {
	Name string `json:"name"`
	UID  uint32 `json:"uid"` // 0 to MaxUser
	GID  uint32 `json:"gid"`
	Home string `json:"home"`
}

// Ids inside the sandbox. Each agent has IDsPerAgent consecutive host ids; one of them
// belongs to clove-init alone, so that the agent cannot signal it.
const (
	IDsPerAgent = 65536
	InitUID     = 65533 // clove-init; never the agent
	MaxUser     = 65532 // the largest id an agent may have
)

// Policy names the document that the defaults came from. SHA256, in hex, is the digest of
// the defaults that it set: two records with the same digest had the same defaults.
type Policy struct {
	Name   string `json:"name"`
	SHA256 string `json:"sha256"`
	// Widened are the places in which it allows more than what it extends, each with the
	// document and the reason: "network (research): reads two sites".
	Widened []string `json:"widened,omitempty"`
	// Claimed is the name that the caller gave, where Name is PolicyCustom: cloved found that
	// the spec allows more than that policy, or found no such policy.
	Claimed string `json:"claimed,omitempty"`
}

// Manifest names the agent's file that a run was started from, as the caller gave it. SHA256,
// in hex, is the digest of what it said: two runs with the same digest had the same manifest.
type Manifest struct {
	Name   string `json:"name"`
	SHA256 string `json:"sha256"`
}

// ManifestFile is a file of the host that a run of a manifest executes.
type ManifestFile struct {
	Path   string `json:"path"`   // absolute
	SHA256 string `json:"sha256"` // in hex
}

// String is the manifest for people; empty: there is none.
func (m Manifest) String() string {
	if m == (Manifest{}) {
		return ""
	}
	return m.Name + " sha256:" + m.SHA256
}

// PolicyCustom is the name of the policy of a run that keeps to none that cloved knows.
const PolicyCustom = "custom"

// String is the name for people, with the caller's in parentheses where cloved did not take it:
// "custom (web)".
func (p Policy) String() string {
	if p.Claimed == "" {
		return p.Name
	}
	return p.Name + " (" + p.Claimed + ")"
}

// Seccomp selects the system call filter. Profile is the name of a built-in profile, or the
// path that Document was read from.
type Seccomp struct {
	Profile  string `json:"profile"`
	Document []byte `json:"document,omitempty"` // docker's JSON format; nil for a built-in
}

// SeccompUnconfined is the only profile that runs an agent without a filter.
const SeccompUnconfined = "unconfined"

// Limits bound all processes of the agent together. 0 means no limit for WallClock,
// CPUTime, CPUs, CPUSet and OutputBytes; all other limits are always set.
type Limits struct {
	MemoryBytes     int64         `json:"memory_bytes"`
	MemorySwapBytes int64         `json:"memory_swap_bytes"` // memory and swap together, as docker counts; equal to MemoryBytes: no swap
	CPUs            float64       `json:"cpus,omitempty"`    // CPU seconds per second
	CPUSet          string        `json:"cpuset_cpus,omitempty"`
	Pids            int64         `json:"pids"`
	Rlimits         []Rlimit      `json:"rlimits,omitempty"`
	CPUTime         time.Duration `json:"cpu_time_ns,omitempty"`   // of all processes together
	WallClock       time.Duration `json:"wall_clock_ns,omitempty"` // on CLOCK_BOOTTIME, from the agent's start
	StopGrace       time.Duration `json:"stop_grace_ns"`           // between StopSignal and SIGKILL
	StopSignal      int           `json:"stop_signal,omitempty"`   // requests the end; 0: SIGTERM
	OutputBytes     int64         `json:"output_bytes,omitempty"`  // stdout and stderr together
	DiskBytes       int64         `json:"disk_bytes"`              // the writable layer
	ShmBytes        int64         `json:"shm_bytes"`               // /dev/shm
}

// SocketBytes is the limit on memory that sockets hold outside MemoryBytes: netlink queues,
// and on cgroup v1 the buffers of TCP and UDP.
func (l Limits) SocketBytes() int64 { return l.MemoryBytes / 4 }

// RlimitInfinity is RLIM_INFINITY of getrlimit(2).
const RlimitInfinity = ^uint64(0)

// Rlimit is one resource limit of setrlimit(2). Name is docker's name: "nofile", "core", "stack", …
type Rlimit struct {
	Name string `json:"name"`
	Soft uint64 `json:"soft"`
	Hard uint64 `json:"hard"`
}

// NoGitDir as Files.GitDir keeps the repository outside.
const NoGitDir = "none"

// Files describes the agent's root file system.
type Files struct {
	Rootfs    string `json:"rootfs,omitempty"`    // host directory that replaces the host base; empty: the host's own system
	Workspace string `json:"workspace,omitempty"` // host directory shown copy-on-write at WorkspaceDir; empty: an empty directory
	// GitDir is the repository to which the workspace's .git file leads, if nothing in it says that it
	// is the workspace's; empty: it must say so to be shown; NoGitDir: none is shown.
	GitDir   string   `json:"git_dir,omitempty"`
	ReadOnly bool     `json:"read_only,omitempty"` // the root is read-only, except for WritablePlaces and the mounts that the user requested
	Writable []string `json:"writable,omitempty"`  // with ReadOnly: the only ones of WritablePlaces that stay writable; nil: all
	Execute  []string `json:"execute,omitempty"`   // the only programs that may be executed: paths inside, directories, or patterns of path.Match; nil: all
	Read     []string `json:"read,omitempty"`      // the only files and directories inside that may be read, beside OwnPlaces; nil: all
	Prefixes []string `json:"prefixes,omitempty"`  // host directories of interpreters, bound read-only at the same path
	Binds    []Bind   `json:"binds,omitempty"`
	Tmpfs    []Tmpfs  `json:"tmpfs,omitempty"`
	Home     *Home    `json:"home,omitempty"`     // nil: a new one, in the layer
	Keep     []string `json:"keep,omitempty"`     // folders inside that are kept with Home, each empty at first; see ValidateKeep
	Landlock string   `json:"landlock,omitempty"` // LandlockRequired: the run is refused where Landlock does not hold the rules, too
}

// LandlockRequired is the only value of Files.Landlock.
const LandlockRequired = "required"

// WorkspaceDir is where the workspace appears inside.
const WorkspaceDir = "/workspace"

// Bind shows a host path inside at Target. Writes change the host's files. Where a user
// other than root requested the run through cloved, the source is opened with that user's
// rights.
type Bind struct {
	Source   string `json:"source"`
	Target   string `json:"target"`
	ReadOnly bool   `json:"read_only,omitempty"`
	// CopyOnWrite puts the agent's own layer over a directory that is read-only: the agent changes
	// what it sees, and the host's files stay. Only where the root can be written at Target.
	CopyOnWrite bool `json:"copy_on_write,omitempty"`
	// Secrets shows a directory copy on write although it has credentials (package homedir).
	Secrets bool `json:"secrets,omitempty"`
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
	ControlLandlock   = "landlock"    // file and TCP rules, a second time from inside
	ControlExecute    = "execute"     // Files.Execute
	ControlRead       = "read"        // Files.Read
	ControlClockStart = "clock-start" // ClockStart
)
