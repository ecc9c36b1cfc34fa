package runtime

import (
	"slices"

	"clove.run/clove/rootfs"
)

// Consent is which of the shown changes of a workspace may be applied. The zero value
// applies nothing.
type Consent struct {
	Apply bool // the changes may be written
	// ExecutableConfig: also those that a program of the host's executes by itself, or may
	// execute (rootfs.ClassUnknown).
	ExecutableConfig bool
	Instructions     bool // also those that the next agent in the folder follows
	// Each are the paths inside of those that were agreed to one by one, of any class.
	Each []string
}

// withheld are the reasons for which changes of a class are refused.
var withheld = map[rootfs.Class]string{
	rootfs.ClassExecutable:   "a program of the host would execute it, and that was not allowed",
	rootfs.ClassInstructions: "the next agent would follow it, and that was not allowed",
	rootfs.ClassUnknown:      "a program of the host might execute it, and that was not allowed",
}

// withhold refuses the changes that need consent of their own, unless it was given: consent to
// a hundred files must not include a Git hook among them.
func (c Consent) withhold(changes []rootfs.Change) []rootfs.Change {
	changes = slices.Clone(changes)
	for i, change := range changes {
		class := change.Class()
		allowed := class == "" || c.ExecutableConfig && class != rootfs.ClassInstructions || c.Instructions && class == rootfs.ClassInstructions
		if !allowed && change.Refused == "" && !slices.Contains(c.Each, change.Path) {
			changes[i].Refused = withheld[class]
		}
	}
	return changes
}
