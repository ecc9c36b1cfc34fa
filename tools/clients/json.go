package clients

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// standard makes JSON of JSON with comments and commas behind the last member. What is taken out becomes
// blanks, so every offset stays.
func standard(text []byte) []byte {
	out := bytes.Clone(text)
	if bytes.HasPrefix(out, []byte("\xEF\xBB\xBF")) {
		blank(out[:3])
	}
	comma := -1 // the last one, if nothing but blanks and comments came since
	for i := 0; i < len(out); i++ {
		switch c := out[i]; {
		case c == '"':
			for i++; i < len(out) && out[i] != '"'; i++ {
				if out[i] == '\\' {
					i++
				}
			}
			comma = -1
		case c == '/' && i+1 < len(out) && (out[i+1] == '/' || out[i+1] == '*'):
			end := commentEnd(out, i)
			blank(out[i:end])
			i = end - 1
		case c == ',':
			comma = i
		case (c == '}' || c == ']') && comma >= 0:
			out[comma] = ' '
			comma = -1
		case !strings.ContainsRune(" \t\r\n", rune(c)):
			comma = -1
		}
	}
	return out
}

// commentEnd is where the comment at i ends.
func commentEnd(text []byte, i int) int {
	end, skip := []byte("\n"), 0
	if text[i+1] == '*' {
		end, skip = []byte("*/"), 2
	}
	at := bytes.Index(text[i+2:], end)
	if at < 0 {
		return len(text)
	}
	return i + 2 + at + skip
}

// blank keeps the ends of lines.
func blank(text []byte) {
	for i, c := range text {
		if c != '\n' && c != '\r' {
			text[i] = ' '
		}
	}
}

// object is where an object is in a text.
type object struct {
	open, close int // offsets of its brackets
	members     []member
}

// member is where a member is: its key begins at from, its value at value, and both end before to.
type member struct {
	name            string
	from, value, to int
}

// find is a member by its name; of several the last, which counts. nil: there is none.
func (o object) find(name string) *member {
	for i := range slices.Backward(o.members) {
		if o.members[i].name == name {
			return &o.members[i]
		}
	}
	return nil
}

var errNoObject = errors.New("it is no object")

// objectAt reads the object that begins at an offset of a text of JSON.
func objectAt(text []byte, at int) (o object, err error) {
	at += len(text[at:]) - len(bytes.TrimLeft(text[at:], " \t\r\n"))
	d := json.NewDecoder(bytes.NewReader(text[at:]))
	if first, err := d.Token(); err != nil || first != json.Delim('{') {
		return o, errors.Join(errNoObject, err)
	}
	o.open = at
	for d.More() {
		from := at + int(d.InputOffset())
		from += bytes.IndexByte(text[from:], '"')
		key, err := d.Token()
		if err != nil {
			return o, err
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return o, err
		}
		to := at + int(d.InputOffset())
		o.members = append(o.members, member{key.(string), from, to - len(value), to})
	}
	if _, err := d.Token(); err != nil {
		return o, err
	}
	o.close = at + int(d.InputOffset()) - 1
	return o, nil
}

// decoded is what a text means. Numbers stay as they are written.
func decoded(text []byte) (root map[string]any, err error) {
	if len(bytes.TrimSpace(standard(text))) == 0 {
		return map[string]any{}, nil
	}
	d := json.NewDecoder(bytes.NewReader(standard(text)))
	d.UseNumber()
	if err := d.Decode(&root); err != nil {
		return nil, fmt.Errorf("it is not JSON: %w", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, errors.New("it is not JSON: there is something behind its end")
	}
	if root == nil {
		return nil, errNoObject
	}
	return root, nil
}

// splice is a part of a text and what takes its place.
type splice struct {
	from, to int
	text     string
}

// spliced replaces parts of a text, which do not overlap.
func spliced(text []byte, parts ...splice) []byte {
	slices.SortStableFunc(parts, func(a, b splice) int { return a.from - b.from })
	var b bytes.Buffer
	at := 0
	for _, p := range parts {
		b.Write(text[at:p.from])
		b.WriteString(p.text)
		at = p.to
	}
	b.Write(text[at:])
	return b.Bytes()
}

// layout is how a text is laid out.
type layout struct{ newline, unit string }

// layoutOf follows the first member of the root.
func layoutOf(text []byte, root object) layout {
	l := layout{"\n", "  "}
	if bytes.Contains(text, []byte("\r\n")) {
		l.newline = "\r\n"
	}
	if len(root.members) > 0 {
		if !bytes.Contains(text[root.open:root.close], []byte("\n")) {
			return layout{} // all in one line
		}
		if own := indentation(text, root.members[0].from); own != "" {
			l.unit = own
		}
	}
	return l
}

// indentation is the white space between the begin of a line and an offset; empty where something else is there.
func indentation(text []byte, at int) string {
	line := text[bytes.LastIndexByte(text[:at], '\n')+1 : at]
	if len(bytes.TrimLeft(line, " \t")) > 0 {
		return ""
	}
	return string(line)
}

// written is a value with this layout, in an object that is so deep.
func (l layout) written(value any, depth int) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if l.newline != "" {
		e.SetIndent(strings.Repeat(l.unit, depth), l.unit)
	}
	_ = e.Encode(value) // of this package's own types
	return strings.ReplaceAll(strings.TrimSuffix(b.String(), "\n"), "\n", l.newline)
}

// colon is what is between a key and its value.
func (l layout) colon() string {
	if l.newline == "" {
		return ":"
	}
	return ": "
}
