package format

import (
	"bytes"
	"encoding/json"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Bounds of a body.
const (
	MaxBody   = 32 << 20 // bytes; Anthropic's own limit, and room for images as data
	MaxDepth  = 64       // arrays and objects inside each other
	MaxValues = 1 << 18  // values: 8 MiB of memory
	maxNumber = 64       // bytes: no client writes longer numbers, and some servers read them slowly
)

type kind byte

const (
	null kind = iota
	boolean
	number
	text
	array
	object
)

// node is a value of a document. Its own values follow it, up to next.
type node struct {
	kind        kind
	escaped     bool  // the name has a backslash
	key, keyEnd int32 // the name in the object around it, without quotes
	from, to    int32 // the value's bytes
	next        int32
}

// document is a body whose values are listed in the order in which they begin.
type document struct {
	body  []byte
	nodes []node
}

func (d *document) raw(i int32) []byte { return d.body[d.nodes[i].from:d.nodes[i].to] }

// name is a value's name in the object around it.
func (d *document) name(i int32) string {
	n := &d.nodes[i]
	if n.escaped {
		return decode(d.body[n.key-1 : n.keyEnd+1])
	}
	return string(d.body[n.key:n.keyEnd])
}

func (d *document) rawName(i int32) []byte { return d.body[d.nodes[i].key-1 : d.nodes[i].keyEnd+1] }

// str is a string's text; "" if the value is none.
func (d *document) str(i int32) string {
	if d.nodes[i].kind != text {
		return ""
	}
	if s, ok := d.unescaped(i); ok {
		return string(s)
	}
	return decode(d.raw(i))
}

// unescaped is a string's bytes as they stand, if it has no escape.
func (d *document) unescaped(i int32) ([]byte, bool) {
	raw := d.raw(i)
	return raw[1 : len(raw)-1], bytes.IndexByte(raw, '\\') < 0
}

// begins reports whether a string has a prefix. It copies long strings only where they have
// an escape.
func (d *document) begins(i int32, prefix string) bool {
	if s, ok := d.unescaped(i); ok {
		return bytes.HasPrefix(s, []byte(prefix))
	}
	return strings.HasPrefix(d.str(i), prefix)
}

// contains reports whether a string contains a text.
func (d *document) contains(i int32, text string) bool {
	if s, ok := d.unescaped(i); ok {
		return bytes.Contains(s, []byte(text))
	}
	return strings.Contains(d.str(i), text)
}

// children are the values of an object or an array.
func (d *document) children(i int32) iter.Seq[int32] {
	return func(yield func(int32) bool) {
		if k := d.nodes[i].kind; k != object && k != array {
			return
		}
		for at := i + 1; at < d.nodes[i].next; at = d.nodes[at].next {
			if !yield(at) {
				return
			}
		}
	}
}

// member finds a value in an object by its name.
func (d *document) member(i int32, name string) (int32, bool) {
	if d.nodes[i].kind == object {
		for at := range d.children(i) {
			if d.name(at) == name {
				return at, true
			}
		}
	}
	return 0, false
}

// path names a value for an error: messages[2].content.
func (d *document) path(i int32) string {
	var out []byte
	for at := int32(0); at != i; {
		index := 0
		for child := range d.children(at) {
			if i < d.nodes[child].next {
				out = d.step(out, at, child, index)
				at = child
				break
			}
			index++
		}
	}
	return string(out)
}

func (d *document) step(out []byte, parent, child int32, index int) []byte {
	if d.nodes[parent].kind == array {
		return fmt.Appendf(out, "[%d]", index)
	}
	if len(out) > 0 {
		out = append(out, '.')
	}
	name := short(d.name(child))
	if strings.Trim(name, nameAlphabet) != "" {
		name = strconv.QuoteToASCII(name)
	}
	return append(out, name...)
}

const nameAlphabet = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-$"

// decode returns the text of a string whose syntax was checked. A half of a surrogate pair
// becomes U+FFFD.
func decode(quoted []byte) string {
	var s string
	if json.Unmarshal(quoted, &s) != nil {
		return "\ufffd"
	}
	return s
}

// short bounds a text that an error repeats.
func short(s string) string {
	const most = 60
	if len(s) <= most {
		return s
	}
	cut := most
	for !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "…"
}
