package format

import (
	"strings"
	"unicode"
)

// fold maps names that Go's decoders hold for the same onto one name: it takes the least
// rune of those that differ only in case, also outside of ASCII (U+017F is an s).
func fold(name string) string { return strings.Map(least, name) }

func least(r rune) rune {
	if r >= 'a' && r <= 'z' {
		r -= 'a' - 'A'
	}
	// SimpleFold goes round in a circle, in which every step but one goes up.
	for next := unicode.SimpleFold(r); ; r, next = next, unicode.SimpleFold(next) {
		if next <= r {
			return next
		}
	}
}
