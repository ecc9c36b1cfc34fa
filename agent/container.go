package agent

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// Container identifies an OCI container that an engine ran with clove-oci. A run with a
// Container is only the record of that container: clove owns no layer, log or process of
// it.
type Container struct {
	ID        string `json:"id"`        // the engine's id
	Directory string `json:"directory"` // of the container, absolute; two engines may use the same id
}

// RunID derives the id of the container's run. It is the same each time the engine starts
// this container, so a later record replaces the earlier one.
func (c Container) RunID() ID {
	// The zero byte, which neither part contains, keeps two different pairs from giving one
	// text.
	sum := sha256.Sum256([]byte(c.Directory + "\x00" + c.ID))
	return ID(hex.EncodeToString(sum[:8]))
}

// ContainerPrefix begins the name of every OCI container's run. No other run's name has a
// '+' (ValidateName), so the two never collide.
const ContainerPrefix = "oci+"

// How much of the engine's id the name shows: most engines make ids of 64 hexadecimal
// digits and print 12 of them. Other ids are shown up to 40 characters.
const (
	digestDigits = 64
	shownDigits  = 12
	shownLetters = 40
)

// Name is the name of the container's run, if it is free.
func (c Container) Name() string {
	shown := c.ID[:min(len(c.ID), shownLetters)]
	if len(c.ID) == digestDigits && strings.Trim(c.ID, "0123456789abcdef") == "" {
		shown = c.ID[:shownDigits]
	}
	return ContainerPrefix + shown
}

// LongName is used where Name is taken. It contains the run's id, so it is unique.
func (c Container) LongName() string { return c.Name() + "+" + string(c.RunID()) }

// Bounds of an engine's container id and directory.
const (
	containerIDCharacters = letters + digits + "_+.-" // libcontainer's rule
	maxContainerID        = 1024                      // and its bound
	maxContainerDirectory = 4095                      // PATH_MAX
)

// Validate rejects a container whose id or directory cannot be shown or typed safely.
func (c Container) Validate() error {
	if c.ID != "" && len(c.ID) <= maxContainerID && consists(c.ID, containerIDCharacters) && strings.HasPrefix(c.Directory, "/") && len(c.Directory) <= maxContainerDirectory {
		return nil
	}
	return &Error{Kind: KindInvalid, Step: "container", Message: "the container's id or directory is not valid", Hint: "clove-oci reports containers that ended"}
}

// CheckOwn rejects an operation that clove performs on its own runs only. Of an OCI
// container it has only the record.
func (r Run) CheckOwn() error {
	if r.Container == nil {
		return nil
	}
	return &Error{Kind: KindConflict, Message: r.Spec.Name + " was an OCI container; clove has only its record",
		Hint: "use the engine that ran it; its id there is " + r.Container.ID}
}
