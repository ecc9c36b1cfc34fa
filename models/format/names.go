package format

import (
	"bytes"
	"fmt"
	"strings"
	"unicode"
)

// names finds a name that occurs twice in an object. Small objects are compared, as a map
// for each of them would cost more than the rest of the parser.
type names struct {
	*document
	object int32
	count  int
	seen   map[string]bool // from manyNames on
}

const manyNames = 16

func (n *names) add(i int32) error {
	if n.count++; n.count <= manyNames {
		for at := n.object + 1; at < i; at = n.nodes[at].next {
			if n.same(at, i) {
				return twice(n.name(i))
			}
		}
		return nil
	}
	if n.seen == nil {
		n.seen = make(map[string]bool, 2*manyNames)
		for at := n.object + 1; at < i; at = n.nodes[at].next {
			n.seen[n.name(at)] = true
		}
	}
	name := n.name(i)
	if n.seen[name] {
		return twice(name)
	}
	n.seen[name] = true
	return nil
}

func (d *document) same(a, b int32) bool {
	x, y := &d.nodes[a], &d.nodes[b]
	if x.escaped || y.escaped {
		return d.name(a) == d.name(b)
	}
	return bytes.Equal(d.body[x.key:x.keyEnd], d.body[y.key:y.keyEnd])
}

func twice(name string) error { return fmt.Errorf("%q occurs twice in one object", short(name)) }

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
