package agent

import "time"

// Update is a change of a live run. A nil field is not changed. All changes take effect, or none.
type Update struct {
	MemoryBytes *int64 `json:"memory_bytes,omitempty"`
	// MemorySwapBytes is memory and swap together; nil keeps the present amount of swap on
	// top of the memory.
	MemorySwapBytes *int64   `json:"memory_swap_bytes,omitempty"`
	CPUs            *float64 `json:"cpus,omitempty"`
	Pids            *int64   `json:"pids,omitempty"`
	// WallClock is the total from the agent's start; 0 removes the deadline.
	WallClock *time.Duration `json:"wall_clock_ns,omitempty"`
	// Rules replace all rules of Egress. The network mode, the host ports and the published
	// ports cannot change: their sockets exist since the start.
	Rules *[]EgressRule `json:"rules,omitempty"`
}

// Stats is the agent's present and total usage. A figure that this host cannot supply is
// nil, never 0.
type Stats struct {
	Time        time.Time `json:"time"`
	Paused      bool      `json:"paused,omitempty"`
	WallMS      int64     `json:"wall_ms"`                // since the agent's start, on CLOCK_BOOTTIME
	MemoryBytes *int64    `json:"memory_bytes,omitempty"` // now, page cache included
	Pids        *int64    `json:"pids,omitempty"`         // now; threads count
	Usage       Usage     `json:"usage"`
	Events      Events    `json:"events"`
	Limits      Limits    `json:"limits"` // in force now
}

// Process is one process of an agent. Its ids are those inside the sandbox.
type Process struct {
	PID       int       `json:"pid" col:"PID"`
	ParentPID int       `json:"parent_pid" col:"PPID"` // 0: started from outside, as PID 1 and what `clove exec` starts
	UID       uint32    `json:"uid" col:"UID"`
	State     string    `json:"state" col:"S"` // one letter, as in proc_pid_stat(5)
	Threads   int       `json:"threads" col:"THREADS"`
	Started   time.Time `json:"started" col:"STARTED,clock"`
	CPUMS     int64     `json:"cpu_ms" col:"CPU,ms"`
	RSSBytes  int64     `json:"rss_bytes" col:"MEMORY,size"`
	Command   []string  `json:"command" col:"COMMAND,words,cut"` // its arguments, or its name in brackets where it has none
}

// Exec is the request for one more process in a sandbox. The process has the agent's
// limits, filter and namespaces, a cgroup below the agent's, and the agent's ids unless
// others are given. It never gets more rights than the agent.
type Exec struct {
	Command  RawStrings    `json:"command"`
	Env      RawStrings    `json:"env,omitempty"`        // KEY=VALUE, on top of the agent's
	Dir      string        `json:"dir,omitempty"`        // empty: the agent's
	User     *User         `json:"user,omitempty"`       // nil: the agent's; root only where the agent is root
	Terminal bool          `json:"terminal,omitempty"`   // a pty, with the size of the terminal at stdin
	Timeout  time.Duration `json:"timeout_ns,omitempty"` // then it and all that it started is ended; 0: no limit
	KillRest bool          `json:"kill_rest,omitempty"`  // what it started ends with it also where it ends by itself
}
