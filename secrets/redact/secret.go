package redact

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/hex"
	"slices"
	"strings"
)

// valueLeast is the shortest value that is looked for: a word such as "none", for a server that
// checks no key, is in many answers.
const valueLeast = 8

// Secret finds values in what a server sends: as they are, in base64, and with the escapes of JSON and URLs. The
// time that this takes does not depend on how much of a value is there: an agent that has the server repeat its guesses
// could measure it.
type Secret struct{ searches []search }

// search finds forms of one value.
type search interface{ find(text []byte) []Span }

// form is a way in which a key is written: as it is, or in base64.
type form struct {
	alphabet *alphabet
	values   []byte // of the characters that the key determines alone
	// The characters before and behind share their bits with what is beside the key.
	before, behind bits
}

// alphabet has the value of each character; none: it is not in it.
type alphabet [256]byte

const none = 0xff

// bits are those of a character's value that the key determines. The zero value is no character.
type bits struct{ mask, value byte }

// Span is a part of a text.
type Span struct{ From, To int }

// New finds a value, unless it has less than 8 bytes.
func New(value string) *Secret { return (&Secret{}).With(value) }

// With finds another value too.
func (s *Secret) With(value string) *Secret {
	if len(value) < valueLeast {
		return s
	}
	return &Secret{slices.Concat(s.searches, searchesOf(value))}
}

func searchesOf(key string) []search {
	var plain, sextets alphabet
	for c := range plain {
		plain[c], sextets[c] = byte(c), none
	}
	for _, encoding := range encodings {
		for value := range byte(64) {
			sextets[encoding.EncodeToString([]byte{value << 2})[0]] = value
		}
	}
	own, encoded := form{alphabet: &plain, values: []byte(key)}, make([]form, 3)
	for offset := range encoded { // bytes before the key in the group of three
		encoded[offset] = inBase64(&sextets, key, offset)
	}
	if len(key) >= longLeast {
		return []search{newBlocks(own, encoded)}
	}
	return []search{newRolling(own), newRolling(encoded...)}
}

// encodings are those that differ in their alphabets.
var encodings = []*base64.Encoding{base64.StdEncoding, base64.URLEncoding}

// inBase64 is the form of a key behind so many bytes.
func inBase64(a *alphabet, key string, offset int) form {
	text := base64.RawStdEncoding.EncodeToString([]byte(strings.Repeat("\x00", offset) + key))
	values := make([]byte, len(text))
	for i, c := range []byte(text) {
		values[i] = a[c]
	}
	var before, behind bits
	if offset > 0 {
		mask := byte(0x3f) >> (8 * offset % 6)
		before, values = bits{mask, values[offset]}, values[offset+1:]
	}
	if end := 8 * (offset + len(key)) % 6; end > 0 {
		last := len(values) - 1
		mask := byte(0x3f) << (6 - end) & 0x3f
		behind, values = bits{mask, values[last]}, values[:last]
	}
	return form{alphabet: a, values: values, before: before, behind: behind}
}

// Find returns where a whole value is in a text, in the order of the text.
func (s *Secret) Find(text []byte) (all []Span) {
	for _, escape := range []escape{{}, inJSON, inURL} {
		characters, at := escape.read(text)
		for _, one := range s.searches {
			for _, m := range one.find(characters) {
				all = append(all, Span{at(m.From), at(m.To)})
			}
		}
	}
	slices.SortFunc(all, func(a, b Span) int { return cmp.Or(a.From-b.From, b.To-a.To) })
	return slices.Compact(all)
}

// at reports whether the form is at a place of a text, and with what is beside it.
func (f *form) at(text []byte, from int) (m Span, ok bool) {
	m = Span{from, from + len(f.values)}
	if from < 0 || m.To > len(text) {
		return m, false
	}
	for i, v := range f.values {
		if f.alphabet[text[from+i]] != v {
			return m, false
		}
	}
	if f.before.mask != 0 {
		if m.From--; m.From < 0 || !f.before.of(f.alphabet[text[m.From]]) {
			return m, false
		}
	}
	if f.behind.mask != 0 {
		if m.To++; m.To > len(text) || !f.behind.of(f.alphabet[text[m.To-1]]) {
			return m, false
		}
	}
	return m, true
}

func (b bits) of(value byte) bool { return value != none && value&b.mask == b.value }

// maxEscape bounds the bytes that stand for one character.
const maxEscape = len(`\u0041`)

// escape is a way in which characters that a key can have are written.
type escape struct {
	mark   byte   // begins each; 0: there are none
	hex    string // is before two digits
	others string // characters that stand for themselves behind the mark
}

var (
	inJSON = escape{'\\', `\u00`, `\/"`}
	inURL  = escape{'%', "%", ""}
)

// read returns the characters of a text, and where each of them and the end was. Those of a
// text that has no such escape are not read again.
func (e escape) read(text []byte) (characters []byte, at func(i int) int) {
	if e.mark == 0 {
		return text, func(i int) int { return i }
	}
	if bytes.IndexByte(text, e.mark) < 0 {
		return nil, nil
	}
	type part struct{ characters, text int } // where it begins
	var parts []part
	for i := 0; i < len(text); {
		parts = append(parts, part{len(characters), i})
		n := bytes.IndexByte(text[i+1:], e.mark) + 1 // to the next mark
		if n == 0 {
			n = len(text) - i
		}
		if text[i] == e.mark {
			var c byte
			c, n = e.first(text[i:])
			characters = append(characters, c)
		} else {
			characters = append(characters, text[i:i+n]...)
		}
		i += n
	}
	parts = append(parts, part{len(characters), len(text)})
	return characters, func(i int) int {
		found, exact := slices.BinarySearchFunc(parts, i, func(p part, i int) int { return p.characters - i })
		if !exact {
			found--
		}
		return parts[found].text + i - parts[found].characters
	}
}

// first returns the first character of a text, and how many bytes it has.
func (e escape) first(text []byte) (c byte, n int) {
	if text[0] != e.mark {
		return text[0], 1
	}
	if rest, ok := bytes.CutPrefix(text, []byte(e.hex)); ok && len(rest) >= 2 {
		var value [1]byte
		if _, err := hex.Decode(value[:], rest[:2]); err == nil {
			return value[0], len(e.hex) + 2
		}
	}
	if len(text) > 1 && strings.IndexByte(e.others, text[1]) >= 0 {
		return text[1], 2
	}
	return text[0], 1
}
