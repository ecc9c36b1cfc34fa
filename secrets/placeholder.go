package secrets

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
)

const (
	// mark is in each placeholder, so that one is known as such, whichever run it is of.
	mark      = "cloveplaceholder"
	randBytes = 16
	// PlaceholderMost bounds the bytes of a placeholder.
	PlaceholderMost = prefixMost + len(mark) + 2*randBytes
)

// NewPlaceholder makes a placeholder for one secret of one start of a run: the prefix, a mark, and 128 random bits
// in letters and digits, which no program and no protocol escapes.
func NewPlaceholder(prefix string) string {
	var random [randBytes]byte
	rand.Read(random[:]) // it never fails
	return prefix + mark + hex.EncodeToString(random[:])
}

// FindPlaceholder returns where the first placeholder of whichever run is in a text, without its prefix; from is negative where
// there is none.
func FindPlaceholder(text []byte) (from, to int) {
	const random = 2 * randBytes
	for at := 0; ; {
		i := bytes.Index(text[at:], []byte(mark))
		if i < 0 {
			return -1, -1
		}
		from, to = at+i, at+i+len(mark)+random
		if to <= len(text) && strings.Trim(string(text[from+len(mark):to]), "0123456789abcdef") == "" {
			return from, to
		}
		at = from + 1
	}
}

// HasPlaceholder reports whether a placeholder of whichever run is in a text.
func HasPlaceholder(text string) bool {
	from, _ := FindPlaceholder([]byte(text))
	return from >= 0
}

// Mount is how a run gets the placeholder of a secret.
type Mount struct {
	Secret string
	As     string // MountEnv, MountFile, or the name of a program
	To     string // the variable, or the path in the sandbox; empty for a program
}

// The forms of Mount.As that name where the placeholder is.
const (
	MountEnv  = "env"
	MountFile = "file"
)

// The forms of Mount.As without a placeholder.
const (
	MountSSH   = "ssh"   // an ssh agent that signs
	MountPlain = "plain" // the value itself, in a file of PlainDir
)

// PlainDir is where the agent reads values.
const PlainDir = "/run/secrets"

// Programs are those that find a placeholder in their own way, without a place that is named.
var Programs = []string{"git", "npm", "pip", "gh"}

// ParseMount reads NAME:env=VAR, NAME:file=PATH or NAME:PROGRAM.
func ParseMount(text string) (m Mount, err error) {
	name, rest, both := strings.Cut(text, ":")
	if err := CheckName(name); err != nil {
		return m, err
	}
	as, to, named := strings.Cut(rest, "=")
	m = Mount{name, as, to}
	switch {
	case as == MountEnv && named && isVariable(to):
	case as == MountFile && named && strings.HasPrefix(to, "/") && len(to) > 1 && len(to) < 4096 && !strings.Contains(to, "\x00"):
	case both && !named && (slices.Contains(Programs, as) || as == MountSSH || as == MountPlain):
	default:
		return m, fmt.Errorf("%.80q does not say how the run gets the secret: write %s:env=VARIABLE, %s:file=/PATH, or %s: and one of %s, %s, %s", text, name, name, name, strings.Join(Programs, ", "), MountSSH, MountPlain)
	}
	return m, nil
}

// Mounted are the names of the secrets in texts of mounts, each once and in their order.
func Mounted(texts []string) (names []string) {
	for _, text := range texts {
		if m, err := ParseMount(text); err == nil {
			names = append(names, m.Secret)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func (m Mount) String() string {
	if m.To == "" {
		return m.Secret + ":" + m.As
	}
	return m.Secret + ":" + m.As + "=" + m.To
}

func isVariable(name string) bool {
	return name != "" && len(name) <= 256 && strings.Trim(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_") == "" && (name[0] < '0' || name[0] > '9')
}
