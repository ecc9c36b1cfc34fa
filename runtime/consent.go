package runtime

import (
	"slices"

	"clove.run/clove/rootfs"
)

// Consent is which of the shown changes of a workspace may be applied. The zero value
// applies nothing.
type Consent struct {
	Apply bool // the changes may be written
	// ExecutableConfig: also those that a program of the host's executes by itself.
	ExecutableConfig bool
	// Executable are the paths inside of those that were agreed to one by one.
	Executable []string
}

// withhold refuses the changes that a program of the host would execute by itself, unless
// each was agreed to: consent to a hundred files must not include a Git hook among them.
func (c Consent) withhold(changes []rootfs.Change) []rootfs.Change {
	changes = slices.Clone(changes)
	for i, change := range changes {
		if change.ExecutedBy != "" && change.Refused == "" && !c.ExecutableConfig && !slices.Contains(c.Executable, change.Path) {
			changes[i].Refused = "a program of the host would execute it, and that was not allowed"
		}
	}
	return changes
}
