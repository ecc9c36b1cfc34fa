package agent

import (
	"fmt"
	"time"
)

// Ready is how long a run may take until it is ready, and how that is seen. An agent also says so
// itself (agent.ready).
type Ready struct {
	Command RawStrings    `json:"command,omitempty"`   // argv inside the sandbox: it is ready when this exits 0; none: only the agent says so
	Within  time.Duration `json:"within_ns,omitempty"` // one that is not ready then is ended; 0: nothing waits for it
}

// ReadyWithin is the usual time of a run whose command is asked.
const ReadyWithin = time.Minute

func (r Ready) validate() error {
	switch {
	case r.Within < 0 || r.Within > ClockCeiling:
		return wrong("ready.within_ns", "give a time above 0, or omit it", "%s is not a time limit", r.Within)
	case len(r.Command) > 0 && r.Within == 0:
		return wrong("ready.within_ns", fmt.Sprintf("give a time, such as %s", ReadyWithin), "a command that is asked without end")
	case len(r.Command) > entriesMost || len(r.Command) > 0 && r.Command[0] == "":
		return wrong("ready.command", "name a program and its arguments", "it has %d words", len(r.Command))
	}
	for _, word := range r.Command {
		if err := checkText("ready.command", word, readyWordMost); err != nil {
			return err
		}
	}
	return nil
}

// readyWordMost bounds a word of Ready.Command, in bytes.
const readyWordMost = 4096
