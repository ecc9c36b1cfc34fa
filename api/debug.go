package api

// DebugPart names one thing that can be looked at. Each is made by itself, so
// that one which hangs hides no other.
type DebugPart string

// The parts.
const (
	DebugVersions      DebugPart = "versions"      // of cloved, its libraries and its host
	DebugGoroutines    DebugPart = "goroutines"    // what each waits for
	DebugHeap          DebugPart = "heap"          // figures of the memory, and the functions that allocated it
	DebugConfiguration DebugPart = "configuration" // as it holds now
	DebugQueue         DebugPart = "queue"         // the runs that wait, and why
	DebugMetrics       DebugPart = "metrics"       // as Prometheus would get them
	DebugLog           DebugPart = "log"           // cloved's own last lines
)

// DebugParts is all of them.
var DebugParts = []DebugPart{DebugVersions, DebugGoroutines, DebugHeap, DebugConfiguration, DebugQueue, DebugMetrics, DebugLog}

// DebugParams chooses one part.
type DebugParams struct {
	Part DebugPart `json:"part"`
}

// DebugResult is the part as text.
type DebugResult struct {
	Text string `json:"text"`
}
