package clients

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// document is a file of JSON whose entries are below keys.
type document struct {
	text, plain []byte // as it is, and as JSON; empty texts become an object
	root        object
	layout      layout
}

func openDocument(text []byte) (d document, err error) {
	if _, err := decoded(text); err != nil {
		return d, err
	}
	if len(bytes.TrimSpace(standard(text))) == 0 {
		text = append(bytes.Clone(text), "{}\n"...)
	}
	d = document{text: text, plain: standard(text)}
	if d.root, err = objectAt(d.plain, 0); err != nil {
		return d, err
	}
	d.layout = layoutOf(text, d.root)
	return d, nil
}

// below is the object below keys. missing are those that are not there: the object is above them.
func (d document) below(keys []string) (o object, missing []string, err error) {
	o = d.root
	for i, key := range keys {
		m := o.find(key)
		if m == nil {
			return o, keys[i:], nil
		}
		if o, err = objectAt(d.plain, m.value); err != nil {
			return o, nil, err
		}
	}
	return o, nil, nil
}

// addJSON puts a value below keys, under a name.
func addJSON(text []byte, keys []string, name string, value any) ([]byte, error) {
	d, err := openDocument(text)
	if err != nil {
		return nil, err
	}
	o, missing, err := d.below(keys)
	if err != nil {
		return nil, err
	}
	path, depth := append(missing, name), len(keys)-len(missing)+1
	member := value
	for _, key := range slices.Backward(path[1:]) {
		member = map[string]any{key: member}
	}
	l := d.layout
	if len(o.members) > 0 && !bytes.Contains(d.text[o.open:o.close], []byte("\n")) {
		l = layout{}
	}
	if m := o.find(path[0]); m != nil {
		return checked(text, spliced(d.text, splice{m.value, m.to, l.written(member, depth)}), keys, name, value)
	}
	return checked(text, d.insert(o, l, strconv.Quote(path[0])+l.colon()+l.written(member, depth), depth), keys, name, value)
}

// insert puts a member behind the last one of an object, and behind the comments that follow it.
func (d document) insert(o object, l layout, member string, depth int) []byte {
	own := strings.Repeat(l.unit, depth)
	inside := bytes.TrimRight(d.text[o.open+1:o.close], " \t\r\n")
	at := o.open + 1 + len(inside)
	if len(o.members) == 0 {
		return spliced(d.text, splice{at, o.close, l.newline + own + member + l.newline + strings.Repeat(l.unit, depth-1)})
	}
	last := o.members[len(o.members)-1]
	if shown := indentation(d.text, last.from); shown != "" {
		own = shown
	}
	if bytes.Contains(d.commas(last.to, o.close), []byte(",")) { // behind the last one, as the file has it
		return spliced(d.text, splice{at, at, l.newline + own + member + ","})
	}
	return spliced(d.text, splice{last.to, last.to, ","}, splice{at, at, l.newline + own + member})
}

// commas are the bytes between two offsets without comments.
func (d document) commas(from, to int) []byte {
	part := bytes.Clone(d.text[from:to])
	for i := 0; i+1 < len(part); i++ {
		if part[i] == '/' && (part[i+1] == '/' || part[i+1] == '*') {
			end := commentEnd(part, i)
			blank(part[i:end])
			i = end - 1
		}
	}
	return part
}

// removeJSON takes a name below keys out.
func removeJSON(text []byte, keys []string, name string) ([]byte, error) {
	d, err := openDocument(text)
	if err != nil {
		return nil, err
	}
	o, missing, err := d.below(keys)
	if err != nil || len(missing) > 0 || o.find(name) == nil {
		return text, err
	}
	at := 0
	for at = range o.members {
		if o.members[at].name == name {
			break
		}
	}
	m := o.members[at]
	from := m.from - len(indentation(d.text, m.from))
	if from > 0 && d.text[from-1] == '\n' {
		from--
		if from > 0 && d.text[from-1] == '\r' {
			from--
		}
	} else {
		from = m.from
	}
	parts := []splice{{from, m.to, ""}}
	end := o.close
	if at+1 < len(o.members) {
		end = o.members[at+1].from
	}
	if comma := bytes.IndexByte(d.commas(m.to, end), ','); comma >= 0 {
		parts = append(parts, splice{m.to + comma, m.to + comma + 1, ""})
	} else if at > 0 {
		before := o.members[at-1].to
		if comma := bytes.IndexByte(d.commas(before, m.from), ','); comma >= 0 {
			parts = append(parts, splice{before + comma, before + comma + 1, ""})
			if m.from == from && len(bytes.TrimSpace(d.plain[before+comma+1:m.from])) == 0 { // in one line
				parts = []splice{{before + comma, m.to, ""}}
			}
		}
	}
	return checked(text, spliced(d.text, parts...), keys, name, nil)
}

// checked returns after, if it means what before does with this one value changed; nil: taken out.
func checked(before, after []byte, keys []string, name string, value any) ([]byte, error) {
	want, err := decoded(before)
	if err != nil {
		return nil, err
	}
	got, err := decoded(after)
	if err != nil {
		return nil, ErrChanged
	}
	at := want
	for _, key := range keys {
		next, is := at[key].(map[string]any)
		if !is {
			next = map[string]any{}
			at[key] = next
		}
		at = next
	}
	if value == nil {
		delete(at, name)
	} else if at[name], err = plainValue(value); err != nil {
		return nil, err
	}
	if !reflect.DeepEqual(got, want) {
		return nil, ErrChanged
	}
	return after, nil
}

// plainValue is a value as decoded has it.
func plainValue(value any) (plain any, err error) {
	text, err := json.Marshal(value)
	if err == nil {
		d := json.NewDecoder(bytes.NewReader(text))
		d.UseNumber()
		err = d.Decode(&plain)
	}
	return plain, err
}
