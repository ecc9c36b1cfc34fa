package agent

import "time"

// RecordVersion is the version of Record that this build writes. Later versions may add
// fields; none changes meaning or disappears within one. Version 2 added Parent, Namespace,
// Usage.Models and the statuses budget and policy-kill; records of version 1 stay readable.
const RecordVersion = 2

// Status says in one word how a run ended.
type Status string

// The statuses of PRODUCT's exit record.
const (
	StatusExited      Status = "exited"
	StatusSignaled    Status = "signaled"
	StatusTimeout     Status = "timeout"
	StatusCPUTime     Status = "cpu-time"
	StatusOOM         Status = "oom"
	StatusOutputLimit Status = "output-limit"
	StatusDiskFull    Status = "disk-full"
	StatusPolicyKill  Status = "policy-kill"
	StatusBudget      Status = "budget"
	StatusKilled      Status = "killed"
	StatusIdle        Status = "idle"
	StatusStartFailed Status = "start-failed"
)

// Statuses lists them all, for tables and tests.
var Statuses = []Status{StatusExited, StatusSignaled, StatusTimeout, StatusCPUTime, StatusOOM, StatusOutputLimit, StatusDiskFull,
	StatusPolicyKill, StatusBudget, StatusKilled, StatusIdle, StatusStartFailed}

// Exit statuses of clove run that are not the agent's own. 124 is that of timeout(1), 125
// to 127 are those of docker run, and 128 with a signal's number is that of a shell.
const (
	ExitTimeout     = 124
	ExitStartFailed = 125
	ExitCannotExec  = 126
	ExitNotFound    = 127
	ExitKilled      = 137 // 128 + SIGKILL
	ExitSignalBase  = 128
)

// Record says how a run ended. A figure that this host cannot supply is nil, never 0.
type Record struct {
	Version    int               `json:"version"`
	ID         ID                `json:"id"`
	Name       string            `json:"name"`
	Namespace  string            `json:"namespace,omitempty"` // below the owner; empty: the owner's own
	Parent     ID                `json:"parent,omitempty"`    // the run whose agent started this one; empty: a person did
	Command    RawStrings        `json:"command"`
	Started    time.Time         `json:"started"`
	Ended      time.Time         `json:"ended"`
	WallMS     int64             `json:"wall_ms"`               // on CLOCK_BOOTTIME, from the agent's start to its end
	ExecutedMS *int64            `json:"executed_ms,omitempty"` // as WallMS, rounded up: no process of the agent executed after this. The kernel may take longer to free what they held
	Status     Status            `json:"status"`
	ExitCode   int               `json:"exit_code"`         // what clove run exits with
	Signal     *string           `json:"signal"`            // "SIGKILL", null when none
	Stopped    *Stopped          `json:"stopped,omitempty"` // set where a user requested the stop, even if the run ended by itself meanwhile
	Error      *Failure          `json:"error,omitempty"`
	Limit      *LimitHit         `json:"limit,omitempty"`
	Usage      Usage             `json:"usage"`
	Events     Events            `json:"events"`
	Network    *NetworkUse       `json:"network,omitempty"` // absent without a gate
	Denials    []Denial          `json:"denials"`
	Asked      *Asked            `json:"asked,omitempty"`   // absent where people are asked nothing
	Streams    *StreamUse        `json:"streams,omitempty"` // absent where mail has no part in them
	Shadow     *ShadowUse        `json:"shadow,omitempty"`  // absent without a shadow
	Enforced   map[string]string `json:"enforced"`          // control to mechanism, for example "memory": "cgroup1"
	Unenforced []string          `json:"unenforced"`
	// ReadableSecrets are those that the agent could read; absent: it used them without that, or had none.
	ReadableSecrets []string `json:"readable_secrets,omitempty"`
	Policy          Policy   `json:"policy"`            // where the defaults came from
	Manifest        Manifest `json:"manifest,omitzero"` // the agent's file that it was started from
	Host            Host     `json:"host"`
}

// Asked is what a run asked people, and what it did not need to ask.
type Asked struct {
	Questions int64 `json:"questions"` // that people had to be asked, whatever they are about
	Allowed   int64 `json:"allowed"`   // of these
	Denied    int64 `json:"denied"`
	Expired   int64 `json:"expired"` // without an answer in time
	Held      int64 `json:"held"`    // connections that waited for an answer
	ByRule    int64 `json:"by_rule"` // connections that rules and earlier answers decided, refused ones among them
}

// StepSupervise is the Error.Step of a record without a supervisor: nothing saw the agent's end.
const StepSupervise = "supervise"

// Lost reports whether the run ended because its supervisor did.
func (r Record) Lost() bool {
	return r.Status == StatusKilled && r.Error != nil && r.Error.Step == StepSupervise
}

// ReasonMost bounds the reason of an end by policy, in bytes.
const ReasonMost = 256

// ValidateReason refuses a reason that would break a line of the record or the audit log.
func ValidateReason(text string) error { return checkText("reason", text, ReasonMost) }

// Stopped says who requested a run's stop, and when.
type Stopped struct {
	By   string    `json:"by"` // credentials of the socket's peer (SO_PEERCRED): "uid 1000, process 4711"
	Time time.Time `json:"time"`
}

// LimitHit names the limit that ended the run. Value and Peak are in the limit's own unit:
// bytes, milliseconds for clocks, or files. Of a budget Name is the dimension, and the unit
// is the dimension's.
type LimitHit struct {
	Name  string `json:"name"`
	Value int64  `json:"value"`
	Peak  *int64 `json:"peak,omitempty"`
	// Account is of a budget that other runs spend from too; empty: it is the run's own.
	Account string `json:"account,omitempty"`
	// Used, Wanted and Period are of a budget: what is used of it in its period, and the reservation
	// that did not fit beside that; 0: what was used ended the run.
	Used   int64  `json:"used,omitempty"`
	Wanted int64  `json:"wanted,omitempty"`
	Period string `json:"period,omitempty"` // hour, day or month; empty: the run's whole life
}

// LimitDiskFiles is the LimitHit of a disk that has free bytes but no free inode; its unit
// is files. LimitHostMemory is that of an agent that ended as oom below its own limit, which
// is the value: all agents together, the host, or the container that clove runs in had no
// more. LimitTreeMemory is that of one that ended as oom below its own limit too, at that of an
// agent which starts others: it and they together had no more. LimitSignal is that of an agent that the
// signal BUDGET ended. The name of every other LimitHit is a control's or a dimension's.
const (
	LimitSignal     = "signal"
	LimitDiskFiles  = "disk-files"
	LimitHostMemory = "host-memory"
	LimitTreeMemory = "tree-memory"
)

// Usage is what all processes of the agent consumed together. CPUMS excludes what clove's
// launch had used in the same cgroup before the agent's execve; StartCPUMS is that part.
// All other figures include the launch.
type Usage struct {
	CPUMS           *int64 `json:"cpu_ms,omitempty"`
	StartCPUMS      *int64 `json:"start_cpu_ms,omitempty"` // the launch's part, not in CPUMS
	CPUUserMS       *int64 `json:"cpu_user_ms,omitempty"`
	CPUSystemMS     *int64 `json:"cpu_system_ms,omitempty"`
	CPUThrottledMS  *int64 `json:"cpu_throttled_ms,omitempty"`
	MemoryPeakBytes *int64 `json:"memory_peak_bytes,omitempty"`
	// StartMemoryPeakBytes is the peak before the agent's execve. A MemoryPeakBytes that is
	// not above it was caused by the launch, not by the agent.
	StartMemoryPeakBytes *int64 `json:"start_memory_peak_bytes,omitempty"`
	PidsPeak             *int64 `json:"pids_peak,omitempty"`
	IOReadBytes          *int64 `json:"io_read_bytes,omitempty"`
	IOWriteBytes         *int64 `json:"io_write_bytes,omitempty"`
	NetRxBytes           *int64 `json:"net_rx_bytes,omitempty"`
	NetTxBytes           *int64 `json:"net_tx_bytes,omitempty"`
	DiskBytes            *int64 `json:"disk_bytes,omitempty"`   // held by the writable layer at the end
	OutputBytes          *int64 `json:"output_bytes,omitempty"` // stdout and stderr together
	// Models is what clove's model service counted, in the order of the models' names;
	// empty: the agent called none. Charges of the agent itself are in its budget only.
	Models []ModelUse `json:"models,omitempty"`
}

// ModelUse is what one model's calls cost together.
type ModelUse struct {
	Model        string `json:"model"`
	Calls        int64  `json:"calls"`
	TokensIn     int64  `json:"tokens_in"` // without those read from the provider's cache
	TokensOut    int64  `json:"tokens_out"`
	TokensCached int64  `json:"tokens_cached"`
	CostMicros   int64  `json:"cost_micros"`         // millionths of a US dollar
	Failed       int64  `json:"failed,omitempty"`    // of Calls: without an answer, or with an error
	Over         int64  `json:"over,omitempty"`      // of Calls: used more than was reserved for them
	Estimated    int64  `json:"estimated,omitempty"` // of Calls: their tokens are estimated, at least in part, because the provider did not report them
}

// Plus adds what the calls of another process cost for the same model.
func (u ModelUse) Plus(o ModelUse) ModelUse {
	u.Calls += o.Calls
	u.TokensIn += o.TokensIn
	u.TokensOut += o.TokensOut
	u.TokensCached += o.TokensCached
	u.CostMicros += o.CostMicros
	u.Failed += o.Failed
	u.Over += o.Over
	u.Estimated += o.Estimated
	return u
}

// Events counts what the kernel did to the agent.
type Events struct {
	OOMKill             *int64 `json:"oom_kill,omitempty"`
	PidsMax             *int64 `json:"pids_max,omitempty"` // forks refused by the pids limit
	MemoryHigh          *int64 `json:"memory_high,omitempty"`
	CPUThrottledPeriods *int64 `json:"cpu_throttled_periods,omitempty"`
}

// The kinds of denials.
const (
	DenialNetwork    = "network"
	DenialCall       = "syscall"
	DenialFile       = "file"
	DenialExec       = "exec"
	DenialCapability = "capability"
	DenialSecret     = "secret" // a request that no rule of a secret allows, or a placeholder where no secret may be
)

// DenialKinds lists them all.
var DenialKinds = []string{DenialNetwork, DenialCall, DenialFile, DenialExec, DenialCapability, DenialSecret}

// Denial is one refused target with its count. Everything below Count is of the first time,
// and empty where it means nothing or cannot be known.
type Denial struct {
	Time    time.Time   `json:"time"`
	Kind    string      `json:"kind"`
	Target  string      `json:"target"` // an address, a call's name, a path, a capability
	Rule    string      `json:"rule"`
	Count   int64       `json:"count"`
	Program string      `json:"program,omitempty"` // path inside of the program that tried
	Errno   string      `json:"errno,omitempty"`   // what it was answered: "EPERM"
	Call    *DeniedCall `json:"call,omitempty"`    // absent for network
}

// DeniedCall is the system call of a denial.
type DeniedCall struct {
	Name   string   `json:"name"`
	Number int      `json:"number"`
	Args   []string `json:"args"` // the six registers in hexadecimal
}

// Host is the host that the run ran on.
type Host struct {
	Kernel string `json:"kernel"`
	Cgroup string `json:"cgroup"` // v2, hybrid, v1
}
