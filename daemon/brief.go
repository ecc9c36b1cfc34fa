package daemon

import (
	"encoding/json"
	"strings"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/scheduler"
)

// briefRun is as much of an agent.Run as a table shows, under the same names, so that a
// client decodes both into an agent.Run. Fields that it leaves out are not on the wire either:
// the zero values of all that a table does not show would be most of a list.
type briefRun struct {
	Spec    briefSpec        `json:"spec"`
	State   agent.State      `json:"state"`
	Owner   agent.Owner      `json:"owner,omitzero"`
	Queue   agent.QueueState `json:"turn,omitzero"` // the name on the wire is older than the type's
	Created time.Time        `json:"created"`
	Started time.Time        `json:"started,omitzero"`
	PID     int              `json:"pid,omitempty"`
	Layer   string           `json:"layer,omitempty"`
	Record  *briefRecord     `json:"record,omitempty"`
	Parent  agent.ID         `json:"parent,omitempty"`
}

type briefSpec struct {
	ID       agent.ID          `json:"id"`
	Name     string            `json:"name"`
	Labels   map[string]string `json:"labels,omitempty"`
	Command  agent.RawStrings  `json:"command"`
	Detached bool              `json:"detached,omitempty"`
	Schedule string            `json:"schedule,omitempty"`
	Limits   briefLimits       `json:"limits"`
}

type briefLimits struct {
	MemoryBytes int64 `json:"memory_bytes"`
}

type briefRecord struct {
	Version  int            `json:"version"`
	ID       agent.ID       `json:"id"`
	Name     string         `json:"name"`
	Started  time.Time      `json:"started"`
	Ended    time.Time      `json:"ended"`
	WallMS   int64          `json:"wall_ms"`
	Status   agent.Status   `json:"status"`
	ExitCode int            `json:"exit_code"`
	Signal   *string        `json:"signal"`
	Error    *agent.Failure `json:"error,omitempty"`
}

// briefCommandBytes is how much of a command a brief run has: a path and some arguments.
const briefCommandBytes = 4 << 10

// briefCommand is the beginning of a command.
func briefCommand(arguments []string) []string {
	left := briefCommandBytes
	for i, argument := range arguments {
		if len(argument) > left {
			// The slice is full, so append copies: the arguments are the cache's, which other
			// callers read. A cut in the middle of a letter would not be UTF-8, which JSON
			// has to be.
			return append(arguments[:i:i], strings.ToValidUTF8(argument[:left], ""))
		}
		left -= len(argument)
	}
	return arguments
}

// briefText encodes what a table shows of a run.
func briefText(run agent.Run) (json.RawMessage, error) {
	s := run.Spec
	brief := briefRun{State: run.State, Owner: run.Owner, Queue: run.Queue, Created: run.Created, Started: run.Started, PID: run.PID, Layer: run.Layer, Parent: run.Parent,
		Spec: briefSpec{s.ID, s.Name, s.Labels, briefCommand(s.Command), s.Detached, s.Schedule, briefLimits{s.Limits.MemoryBytes}}}
	if r := run.Record; r != nil {
		brief.Record = &briefRecord{r.Version, r.ID, r.Name, r.Started, r.Ended, r.WallMS, r.Status, r.ExitCode, r.Signal, r.Error}
	}
	return json.Marshal(brief)
}

// brief is briefText, once for each state of a run.
func (c *cache) brief(run *agent.Run) (json.RawMessage, error) {
	if scheduler.Scheduled(run) {
		return briefText(scheduler.WithNext(*run)) // in the time zone of now
	}
	id := run.Spec.ID
	c.mu.Lock()
	text, known := c.briefs[id]
	// The same pointer is the same state, because a stored value is replaced and never
	// changed.
	known = known && c.runs[id] == run
	c.mu.Unlock()
	if known {
		return text, nil
	}
	// Encoded without the lock, so that a long list delays no other caller.
	text, err := briefText(*run)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.runs[id] == run { // drop forgets the text with it
		c.briefs[id] = text
	}
	return text, nil
}

// text is a run as an answer has it. The environment is never in a list: it may have
// secrets, and run.get shows it redacted.
func (c *cache) text(run *agent.Run, brief bool) (json.RawMessage, error) {
	if brief {
		return c.brief(run)
	}
	return json.Marshal(scheduler.WithNext(run.WithoutEnv()))
}
