package bench

import (
	"time"

	"clove.run/clove/agent"
)

// ResultVersion is the version of Result that this build writes. Later versions may add
// fields; none changes meaning within one.
const ResultVersion = 1

// Outcome says in one word what an attempt showed.
type Outcome string

// The outcomes.
const (
	Passed         Outcome = "passed"
	Failed         Outcome = "failed"
	Infrastructure Outcome = "infrastructure" // it says nothing about the agent
)

// Result is one line of results.jsonl. Of two lines with the same attempt the later one
// counts.
type Result struct {
	Version int     `json:"version"`
	Attempt string  `json:"attempt"` // TASK.AGENT.SEED, also the folder's name
	Task    string  `json:"task"`
	Agent   string  `json:"agent"`
	Seed    int64   `json:"seed"`
	Tries   int     `json:"tries"` // starts, with those that failed for the infrastructure
	Outcome Outcome `json:"outcome"`
	Cause   string  `json:"cause"`  // of the outcome, in a few words: "oom", "exit status 3", "grader: 0.50 of 1"
	Score   float64 `json:"score"`  // 0 to 1
	Record  *Exit   `json:"record"` // of the agent's run; null: it was not known when it failed
	Grade   *Grade  `json:"grade"`  // null: there was nothing to grade
	CPUs    []int   `json:"cpus"`   // to which it was pinned
	Times   Times   `json:"times"`
	Files   Files   `json:"files"`
	Metrics Metrics `json:"metrics"`
}

// Exit is the exit record of a run, docs/record.md.
type Exit = agent.Record

// Grade is what the grader found.
type Grade struct {
	Score  float64 `json:"score"`
	Checks []Check `json:"checks,omitempty"` // expected files and patterns
	Record *Exit   `json:"record,omitempty"` // of the grader's own sandbox; absent: it has no command
}

// Check is one expectation about a file.
type Check struct {
	File string `json:"file"`
	OK   bool   `json:"ok"`
	Why  string `json:"why,omitempty"`
}

// Times are the phases of an attempt, in milliseconds.
type Times struct {
	Began   time.Time `json:"began"`
	SetupMS float64   `json:"setup_ms"` // from the copy of the files to the agent's first instruction
	AgentMS float64   `json:"agent_ms"`
	KeepMS  float64   `json:"keep_ms"` // from the agent's end until its files are kept
	GradeMS float64   `json:"grade_ms"`
}

// Files are what an attempt leaves in its folder.
type Files struct {
	SHA256  map[string]string `json:"sha256"`  // of each file of the attempt's folder
	Changed int               `json:"changed"` // files that the agent changed, in changes.json
	Refused int               `json:"refused"` // of these, not kept: devices, sockets, links that lead out
}

// Metrics are what is compared of attempts. A figure that nobody counted is nil.
type Metrics struct {
	Completed    bool    `json:"completed"`
	Score        float64 `json:"score"`
	WallMS       int64   `json:"wall_ms"`
	CPUMS        *int64  `json:"cpu_ms,omitempty"`
	ThrottledMS  *int64  `json:"throttled_ms,omitempty"`
	MemoryPeak   *int64  `json:"memory_peak_bytes,omitempty"`
	PidsPeak     *int64  `json:"pids_peak,omitempty"`
	IOBytes      *int64  `json:"io_bytes,omitempty"`      // read and written
	NetBytes     *int64  `json:"net_bytes,omitempty"`     // in and out
	Denials      int64   `json:"denials"`                 // what was refused to it
	Tokens       *int64  `json:"tokens,omitempty"`        // of all kinds
	TokensIn     *int64  `json:"tokens_in,omitempty"`     // without cached ones
	TokensOut    *int64  `json:"tokens_out,omitempty"`    // made by the model
	TokensCached *int64  `json:"tokens_cached,omitempty"` // read from the provider's cache
	ModelCalls   *int64  `json:"model_calls,omitempty"`
	CostMicros   *int64  `json:"cost_micros,omitempty"` // millionths of a US dollar
	ToolCalls    *int64  `json:"tool_calls,omitempty"`  // by the agent's own count, as the next two
	Retries      *int64  `json:"retries,omitempty"`     // after an error
	Steps        *int64  `json:"steps,omitempty"`
	Own          bool    `json:"own,omitempty"`        // tokens, calls and cost are the agent's own count
	Unreadable   int     `json:"unreadable,omitempty"` // lines of the agent's metrics that are none
}
