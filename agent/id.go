package agent

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"regexp"
	"sync"
)

// ID identifies one run for ever: 16 lower-case hexadecimal digits, 64 random bits.
type ID string

// NewID returns a fresh random ID.
func NewID() ID {
	var b [8]byte
	rand.Read(b[:]) // never fails, see crypto/rand
	return ID(hex.EncodeToString(b[:]))
}

// Regular expressions are compiled at first use: libcontainer executes the clove binary a
// second time for each launch, so package initialisation is paid for twice.
var (
	idPattern = pattern(`^[0-9a-f]{16}$`)
	// namePattern is docker's container name rule, so that names carry over.
	namePattern = pattern(`^[a-zA-Z0-9][a-zA-Z0-9_.-]{0,62}$`)
)

func pattern(text string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(text) })
}

// Valid reports whether id has the form that NewID returns.
func (id ID) Valid() bool { return idPattern().MatchString(string(id)) }

// ValidateName rejects a name that is not safe to show, to type or to use as a file name.
func ValidateName(name string) error {
	if namePattern().MatchString(name) {
		return nil
	}
	return &Error{Kind: KindInvalid, Step: "name",
		Message: fmt.Sprintf("%q is not a name", name),
		Hint:    "use 1 to 63 letters, digits, '_', '.' or '-', and begin with a letter or digit"}
}
