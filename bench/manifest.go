package bench

import "time"

// ManifestVersion is the version of Manifest that this build writes.
const ManifestVersion = 1

// Manifest says under which conditions the results were made.
type Manifest struct {
	Version  int               `json:"version"`
	Suite    SuiteID           `json:"suite"`
	Began    time.Time         `json:"began"`
	Ended    time.Time         `json:"ended,omitzero"` // zero: it was interrupted
	Binaries map[string]string `json:"binaries"`       // SHA-256 of clove and clove-init
	Host     Machine           `json:"host"`
	Parity   bool              `json:"parity"`
	Enforced []Knob            `json:"enforced"`
	Noise    []Noise           `json:"noise"` // before, between and after
	Parallel int               `json:"parallel"`
	Attempts int               `json:"attempts"`
	Results  string            `json:"results_sha256,omitempty"` // of results.jsonl at the end
	// Replay is the place for a recording of model calls. No version of clove writes it yet.
	Replay *struct{} `json:"replay"`
}

// SuiteID says which suite it was. SHA256 covers the document and every file that it names.
type SuiteID struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	SHA256  string `json:"sha256"`
}

// Machine is the host, as far as it can change a figure.
type Machine struct {
	Kernel    string    `json:"kernel"`
	Cgroup    string    `json:"cgroup"`
	Processor string    `json:"processor"`
	CPUs      int       `json:"cpus"`
	Memory    int64     `json:"memory_bytes"`
	Findings  []Finding `json:"findings"`
}

// Finding is one setting of the host that makes figures vary.
type Finding struct {
	Name  string `json:"name" col:"SETTING"`
	Value string `json:"value" col:"VALUE"`
	Quiet bool   `json:"quiet" col:"QUIET,yesno"` // nothing to complain of
	Hint  string `json:"hint,omitempty" col:"HINT"`
}

// Knob is one condition of parity. Found is what a probe in a sandbox saw, under the same
// settings as each attempt.
type Knob struct {
	Name     string `json:"name"`
	Wanted   string `json:"wanted"`
	Found    string `json:"found"`
	Enforced bool   `json:"enforced"`
}

// Noise is one measurement of the machine: how far apart equal pieces of work are.
type Noise struct {
	When   string  `json:"when"`   // before, between, after
	Spin   float64 `json:"spin"`   // (p90 - p10) / median of a loop in the processor
	Memory float64 `json:"memory"` // the same of a loop through memory
	SpinMS float64 `json:"spin_ms"`
}
