package build

import (
	"time"

	"clove.run/clove/agent"
)

// Request is what one run was asked to be. The zero value of a field is its default, which
// is the standard level's (policies.Standard) unless the field says otherwise.
//
// A size is a number of bytes with an optional unit, powers of 1024: "512K", "1.5G". A
// duration is Go's or a number of seconds: "90", "1.5s", "2h30m". Relative paths of the
// host begin at Host.Dir.
type Request struct {
	Script string   // host path of a script or program, which runs inside with its interpreter; empty: Args is the whole command
	Args   []string // the script's arguments, or the command and its arguments
	Policy string   // level, name or file of the policy that the defaults come from, see LoadPolicy; default: standard

	PolicyShadow string // the same, of a policy that is decided beside and refuses nothing; default: none

	// Limits of all the agent's processes together.
	Memory       string   // size, caches included; at least agent.MemoryFloorBytes
	MemorySwap   string   // size of memory and swap together, at least Memory; "-1": any amount of swap; default: no swap
	CPUs         string   // CPU seconds per second: "0.5"; default: no limit
	CPUSet       string   // CPU numbers and ranges, "0-2,4"; default: all
	Pids         string   // number of processes and threads; at least agent.PidsFloor
	Ulimits      []string // NAME=SOFT[:HARD] in the resource's own unit, -1 for none, laid over the level's
	CPUTime      string   // duration; default: no limit
	Timeout      string   // duration on the wall clock; default: no limit
	StopTimeout  string   // duration between StopSignal and KILL; "0": KILL at once
	StopSignal   string   // name or number of the signal that asks the agent to end; default: TERM
	StartTimeout string   // duration in which a step of the start may make no progress
	Output       string   // size of stdout and stderr together; default: no limit
	Disk         string   // size of the writable layer
	Shm          string   // size of /dev/shm

	// Files. Host paths must exist and become canonical.
	Volumes   []string // binds, SOURCE:TARGET[:ro|rw]
	Mounts    []string // binds and tmpfs in docker's long form: "type=bind,source=DIR,target=DIR,readonly"
	Tmpfs     []string // TARGET[:size=SIZE,mode=OCTAL]
	ReadOnly  bool     // the root is read-only
	Writable  []string // with ReadOnly: the only ones of agent.WritablePlaces that stay writable; nil: all
	Read      []string // the only files and directories inside that may be read, as agent.Files has them; nil: all
	Execute   []string // with ReadOnly: the only programs that may be executed, as agent.Files has them; nil: all
	Landlock  string   // as agent.Files has it
	Rootfs    string   // host directory that replaces the host's base system; default: the base system
	Workspace string   // host directory that appears, copy on write, at agent.WorkspaceDir; default: the script's directory, or an empty one
	Python    string   // Python interpreter (path or name in PATH) or virtual environment; default: .venv beside the script, or python3 in PATH

	// Identity and environment.
	Env      []string // KEY=VALUE, or KEY for the caller's value
	EnvFiles []string // host paths of files with one such entry a line; Env wins
	Workdir  string   // absolute path inside
	User     string   // NAME|UID[:GID] inside
	Name     string   // the run's name; default: made of the script's or program's
	Labels   []string // KEY=VALUE; the last one of a key wins
	Hostname string   // default: the run's ID
	// ClockStart is as agent.Spec has it. No flag sets it; bench does.
	ClockStart time.Duration

	// What agents share, see docs/kernel.md.
	AgentSocket bool     // the agent has a socket of its own
	Models      []string // names or globs, each a grant of kind model
	ModelSetup  string   // one of agent.ModelSetups, whose file is written into the agent's home; default: none
	ModelLog    bool     // keep what the calls of models say and get
	Grants      []string // KIND:PATTERN[:RIGHTS]
	Budgets     []string // DIMENSION=AMOUNT[/PERIOD][,warn=AMOUNT]
	AtEnd       string   // what happens when a budget is spent: end, pause or refuse; default: end
	OnWarn      string   // command or URL for a budget that reached its warning
	OnEnd       string   // command or URL for a budget of which nothing is left
	OnDenial    string   // what a refusal does to the run: deny, pause, end or end-after:N; default: deny
	Namespace   string   // a path below the owner; default: the owner's own

	// Network.
	Network        string   // one of agent.NetworkModes; default: none, or allowlist with Allow or Deny
	Allow, Deny    []string // targets as egress.ParseTarget reads them; deny beats allow
	Publish        []string // [IP:]HOSTPORT:PORT; without IP at 127.0.0.1, port 0 of the host is any free one
	HostPorts      []string // ports of the host's 127.0.0.1 that the agent reaches at its own
	DNS            []string // name servers, ADDRESS[:PORT]; default: the host's
	Hosts          []string // lines of /etc/hosts, NAME:ADDRESS or NAME=ADDRESS
	NetConnections string   // number of connections open at once
	NetRate        string   // number of new connections per second
	NetBytes       string   // size, in and out together; default: no limit

	// Walls.
	Seccomp         string   // name of a profile (seccomp.Names) or host path of one in docker's JSON format
	CapDrop         []string // capabilities that root inside loses: "CHOWN", "CAP_CHOWN" or "ALL"
	AllowUnenforced []string // agent.Control words: start although this host cannot enforce them

	// A run of cloved's. All but Detached are refused without it.
	Detached  bool     // nobody waits for the run
	Restart   string   // never, on-failure[:MAX] or always[:MAX]; default: never
	Schedule  string   // cron expression in cloved's time zone
	KeepFiles bool     // each start of the schedule goes on with the files of the one before
	After     []string // names of runs that must have started first
	Priority  string   // number from -1000 to 1000, higher goes first; default: 0

	Interactive bool // detached: keep stdin open for clove attach
	Terminal    bool // give the agent a terminal
	Remove      bool // keep neither record nor layer after the end

	policyRules []agent.EgressRule // of the policy's document
	policyEnv   []string           // KEY=VALUE or KEY, of the policy's document
}
