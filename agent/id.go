package agent

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"strings"
)

// ID identifies one run for ever: 16 lower-case hexadecimal digits, 64 random bits.
type ID string

// NewID returns a fresh random ID.
func NewID() ID {
	var b [8]byte
	rand.Read(b[:]) // never fails, see crypto/rand
	return ID(hex.EncodeToString(b[:]))
}

const (
	hexDigits = "0123456789abcdef"
	letters   = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	digits    = "0123456789"
)

// maxName and the characters of a name are docker's rule for containers, so that names carry
// over.
const maxName = 63

// consists reports whether all characters of text are in set.
func consists(text, set string) bool { return strings.Trim(text, set) == "" }

// Valid reports whether id has the form that NewID returns.
func (id ID) Valid() bool { return len(id) == 16 && consists(string(id), hexDigits) }

// ValidateName rejects a name that is not safe to show, to type or to use as a file name.
func ValidateName(name string) error {
	if name != "" && len(name) <= maxName && consists(name[:1], letters+digits) && consists(name, letters+digits+"_.-") {
		return nil
	}
	return &Error{Kind: KindInvalid, Step: "name",
		Message: fmt.Sprintf("%q is not a name", name),
		Hint:    "use 1 to 63 letters, digits, '_', '.' or '-', and begin with a letter or digit"}
}
