package agent

import "time"

// Update is what may change while an agent runs. nil leaves a thing as it is.
// It is done as a whole or not at all.
type Update struct {
	MemoryBytes *int64 `json:"memory_bytes,omitempty"`
	// MemorySwapBytes is memory and swap together; nil keeps the swap that the
	// agent had beside its memory.
	MemorySwapBytes *int64   `json:"memory_swap_bytes,omitempty"`
	CPUs            *float64 `json:"cpus,omitempty"`
	Pids            *int64   `json:"pids,omitempty"`
	// WallClock is the whole of it, from the agent's start; 0 takes it away.
	WallClock *time.Duration `json:"wall_clock_ns,omitempty"`
	// Rules take the place of all rules of Egress. The mode, the host's ports and
	// the published ones stay what they were at the start.
	Rules *[]EgressRule `json:"rules,omitempty"`
}

// Stats is what an agent uses now and has used since its start. A figure that
// this host cannot supply is absent (nil), never 0.
type Stats struct {
	Time        time.Time `json:"time"`
	Paused      bool      `json:"paused,omitempty"`
	WallMS      int64     `json:"wall_ms"`                // since the agent's start, on CLOCK_BOOTTIME
	MemoryBytes *int64    `json:"memory_bytes,omitempty"` // now, page cache included
	Pids        *int64    `json:"pids,omitempty"`         // now; threads count
	Usage       Usage     `json:"usage"`
	Events      Events    `json:"events"`
	Limits      Limits    `json:"limits"` // those in force
}

// Process is one process of an agent. Ids are the sandbox's own.
type Process struct {
	PID       int       `json:"pid"`
	ParentPID int       `json:"parent_pid"` // 0: started from outside, as PID 1 and what `clove exec` starts
	UID       uint32    `json:"uid"`
	State     string    `json:"state"` // one letter, as in proc_pid_stat(5)
	Threads   int       `json:"threads"`
	Started   time.Time `json:"started"`
	CPUMS     int64     `json:"cpu_ms"`
	RSSBytes  int64     `json:"rss_bytes"`
	Command   []string  `json:"command"` // its arguments, or its name in brackets where it has none to show
}

// Exec asks for one more process in a sandbox. It is the agent's equal: the
// same limits, filter, namespaces and cgroup, the same ids if no others are named, and never more.
type Exec struct {
	Command  []string `json:"command"`
	Env      []string `json:"env,omitempty"`      // KEY=VALUE, on top of the agent's
	Dir      string   `json:"dir,omitempty"`      // empty: the agent's
	User     *User    `json:"user,omitempty"`     // nil: the agent's; root only where the agent is root
	Terminal bool     `json:"terminal,omitempty"` // a pty; its size is that of the terminal that stdin is
}
