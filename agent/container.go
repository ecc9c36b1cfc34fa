package agent

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// Container is what an engine calls a container that it ran with clove-oci. A
// run that has one is the account of it, and nothing else of it is clove's.
type Container struct {
	ID        string `json:"id"`        // the engine's
	Directory string `json:"directory"` // the container's own, absolute; two engines may use one id
}

// RunID is the id of a container's run: the same for each time that the engine
// starts the same container, so that a restart replaces its account.
func (c Container) RunID() ID {
	sum := sha256.Sum256([]byte(c.Directory + "\x00" + c.ID))
	return ID(hex.EncodeToString(sum[:8]))
}

// ContainerPrefix begins the name of every container's run. It holds a character
// that no other run's name has, so that neither can take the other's.
const ContainerPrefix = "oci+"

// As much of an engine's id as a name shows: of the 64 digits that most engines
// make what they show themselves, of other ids enough to know them by.
const (
	digestDigits = 64
	shownDigits  = 12
	shownLetters = 40
)

// Name is what the container's run is called, if no other one is.
func (c Container) Name() string {
	shown := c.ID[:min(len(c.ID), shownLetters)]
	if len(c.ID) == digestDigits && strings.Trim(c.ID, "0123456789abcdef") == "" {
		shown = c.ID[:shownDigits]
	}
	return ContainerPrefix + shown
}

// LongName is the name of one whose Name is taken; nobody else can have it.
func (c Container) LongName() string { return c.Name() + "+" + string(c.RunID()) }

// The bounds of what an engine may call a container.
const (
	maxContainerID        = 1024 // libcontainer's
	maxContainerDirectory = 4095 // PATH_MAX
)

var containerID = pattern(`^[a-zA-Z0-9_+.-]+$`) // libcontainer's rule

// Validate refuses a container that could not be shown or typed safely.
func (c Container) Validate() error {
	if len(c.ID) <= maxContainerID && containerID().MatchString(c.ID) && strings.HasPrefix(c.Directory, "/") && len(c.Directory) <= maxContainerDirectory {
		return nil
	}
	return &Error{Kind: KindInvalid, Step: "container", Message: "no engine has such a container", Hint: "clove-oci tells of those that ended"}
}

// CheckOwn refuses what clove can do with its own runs alone: of an engine's
// container it has the record.
func (r Run) CheckOwn() error {
	if r.Container == nil {
		return nil
	}
	return &Error{Kind: KindConflict, Message: r.Spec.Name + " was an engine's container, and only its record is here",
		Hint: "ask the engine that ran it, which calls it " + r.Container.ID}
}
