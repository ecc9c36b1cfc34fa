package agent

import (
	"cmp"
	"maps"
	"slices"
)

// Observed is what a run with Spec.Learn used, as far as clove saw it. Every list is sorted
// and has no entry twice.
type Observed struct {
	// Paths are those that the agent saw. A path that was renamed or removed later is named as
	// it was when the event was read.
	Executed []string `json:"executed"` // programs, interpreters and dynamic loaders
	Written  []string `json:"written"`  // opened for writing, made, changed or removed
	Read     []string `json:"read"`     // opened for reading only
	Folders  []string `json:"folders"`  // opened, to list them or to begin paths at them
	// Programs are the files that a list of programs must name for such a run: those that were
	// executed, and libraries that were mapped as code (dlopen(3)). A library that one of
	// them is linked with is left out. ProgramsKnown is false where mappings were not watched.
	ProgramsKnown bool              `json:"programs_known"`
	Programs      []string          `json:"programs"`
	Unlistable    []ObservedProblem `json:"unlistable"` // of Programs: what no list can name
	Listed        []string          `json:"listed"`     // entries of the run's own list that were used
	// CallsKnown is false where system calls were not watched; Calls says nothing then.
	CallsKnown bool             `json:"calls_known"`
	Calls      []ObservedCall   `json:"calls"`
	Targets    []ObservedTarget `json:"targets"`
	Peaks      ObservedPeaks    `json:"peaks"`
	// Incomplete are reasons why more may have been used; empty: clove knows of none.
	Incomplete []string `json:"incomplete"`
}

// ObservedProblem is why a list of programs cannot name a file.
type ObservedProblem struct {
	Path   string `json:"path"`
	Reason string `json:"reason"`
}

// ObservedCall is a system call that the filter minimal would not have allowed.
type ObservedCall struct {
	Name string    `json:"name"`
	Args [6]uint64 `json:"args"` // of a call that some filter allows with some arguments only; else zero
}

// ObservedTarget is a target of the network.
type ObservedTarget struct {
	Kind    string `json:"kind"`              // dns, tcp, udp, host-port
	Name    string `json:"name,omitempty"`    // empty: none was known
	Address string `json:"address,omitempty"` // empty: a name alone, or a connection by name
	Port    uint16 `json:"port,omitempty"`    // 0: a name was looked up
	Refused bool   `json:"refused,omitempty"` // by the rules, at least once
	Allowed bool   `json:"allowed,omitempty"` // at least once, with or without an answer
}

// ObservedPeaks are the largest figures at once. A figure that is 0 is not known.
type ObservedPeaks struct {
	MemoryBytes int64 `json:"memory_bytes"`
	Pids        int64 `json:"pids"`
	CPUMS       int64 `json:"cpu_ms"`
	WallMS      int64 `json:"wall_ms"`
	OutputBytes int64 `json:"output_bytes"`
	DiskBytes   int64 `json:"disk_bytes"`  // sampled while it ran, and at the end
	ShmBytes    int64 `json:"shm_bytes"`   // sampled
	Descriptors int64 `json:"descriptors"` // of one process, sampled
	Connections int64 `json:"connections"`
}

// The bounds of an observation. Further entries are left out, and Incomplete says so.
const (
	MostObservedPaths   = 20_000 // in each list
	MostObservedCalls   = 2000
	MostObservedTargets = 1000
)

// Key is what tells two entries apart.
func (t ObservedTarget) Key() ObservedTarget {
	t.Refused, t.Allowed = false, false
	return t
}

// CompareCalls orders calls by name, and calls of one name by their arguments.
func CompareCalls(a, b ObservedCall) int {
	return cmp.Or(cmp.Compare(a.Name, b.Name), slices.Compare(a.Args[:], b.Args[:]))
}

// CompareProblems orders problems by path.
func CompareProblems(a, b ObservedProblem) int {
	return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Reason, b.Reason))
}

// CompareTargets orders targets as a person looks for them: by name, address, port and kind.
func CompareTargets(a, b ObservedTarget) int {
	return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Address, b.Address), cmp.Compare(a.Port, b.Port), cmp.Compare(a.Kind, b.Kind),
		bit(a.Refused)-bit(b.Refused), bit(a.Allowed)-bit(b.Allowed))
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

// Bounded sorts a set and keeps its first entries; over reports whether some were left out.
func Bounded[T comparable](set map[T]bool, order func(a, b T) int, most int) (kept []T, over bool) {
	kept = slices.SortedFunc(maps.Keys(set), order)
	if kept == nil {
		kept = []T{}
	}
	if len(kept) > most {
		return kept[:most], true
	}
	return kept, false
}
