package agent

import (
	"fmt"
	"slices"
	"strings"
)

// After is one entry of Spec.After: a run that comes first, and how far it must have come.
// Its text is NAME or NAME:CONDITION.
type After struct {
	RunName
	Condition string // one of Conditions
}

// The conditions of After.
const (
	AfterStarted = "started" // it runs, or has ended with status 0
	AfterReady   = "ready"   // it has said so since it started, and runs or has ended with status 0
	AfterEnded   = "ended"   // it has ended with status 0
)

// Conditions lists them.
var Conditions = []string{AfterStarted, AfterReady, AfterEnded}

// Met reports whether a run has come so far. One that waits for its next scheduled time counts by
// its last start (LastRecord).
func (a After) Met(first *Run) bool {
	last := first.LastRecord()
	ended := last != nil && last.ExitCode == 0
	lives := first.State == StateRunning
	switch a.Condition {
	case AfterStarted:
		return lives || ended
	case AfterReady:
		return !first.Queue.Ready.IsZero() && (lives || ended)
	case AfterEnded:
		return ended
	}
	return false
}

// SplitAfter separates an entry of Spec.After into the run and the condition.
func SplitAfter(text string) (run, condition string, err error) {
	run, condition, named := strings.Cut(text, ":")
	if !named {
		return run, AfterStarted, nil
	}
	if !slices.Contains(Conditions, condition) {
		return run, condition, &Error{Kind: KindInvalid, Step: "after", Message: fmt.Sprintf("%.64q is no condition", condition),
			Hint: "write NAME:" + strings.Join(Conditions, ", NAME:")}
	}
	return run, condition, nil
}

// Afters returns Spec.After. Names are stored as the run's owner writes them.
func (r Run) Afters() []After {
	all := make([]After, len(r.Spec.After))
	for i, text := range r.Spec.After {
		name, condition, err := SplitAfter(text)
		all[i] = After{RunName{r.Owner.UID, text}, condition} // no run has such a name
		if read, nerr := ParseRunName(name, r.Owner.UID); err == nil && nerr == nil {
			all[i].RunName = read
		}
	}
	return all
}

// AfterNames returns the runs in Spec.After.
func (r Run) AfterNames() (names []RunName) {
	for _, after := range r.Afters() {
		names = append(names, after.RunName)
	}
	return names
}
