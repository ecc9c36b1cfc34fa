package policies

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"clove.run/clove/agent"
	"clove.run/clove/internal/document"
	"clove.run/clove/policies/settings"
)

// Document is a policy as it is written. A setting that is absent leaves the value of what the
// document extends.
type Document struct {
	Head
	settings.Values
}

// Over lays d over what it extends. Name, description, extends and widen stay d's.
func (d Document) Over(base Document) Document {
	return Document{Head: d.Head, Values: d.Values.Extend(base.Values)}
}

// Head says what a document is.
type Head struct {
	Version     int               `json:"version" required:"true" doc:"the version of this format: 1"`
	Name        string            `json:"name" required:"true" doc:"a word of letters, digits, '-', '_' and '.'; a file that is found by its name is called NAME.yaml"`
	Description string            `json:"description,omitempty" doc:"what it is for, in a sentence"`
	Extends     string            `json:"extends,omitempty" doc:"a level (unrestricted, standard, sandboxed, readonly, minimal), the name of another document, or the path of one; standard if it is absent"`
	Widen       map[string]string `json:"widen,omitempty" doc:"for each key in which this document allows more than what it extends: why. A key stands for all keys below it: network for network.mode"`
}

// Text is a text that may be written as a number.
type Text string

// UnmarshalJSON takes a text or a number as it is written.
func (t *Text) UnmarshalJSON(text []byte) error {
	if len(text) > 0 && (text[0] == '-' || text[0] >= '0' && text[0] <= '9') {
		*t = Text(text)
		return nil
	}
	return json.Unmarshal(text, (*string)(t))
}

// SchemaTypes implements document.Worded.
func (Text) SchemaTypes() []string { return []string{"string", "number"} }

// MostBytes bounds a document.
const MostBytes = 256 << 10

// reasonMost bounds a reason of widen, in bytes.
const reasonMost = 500

// documentVersion is the version that this clove reads.
const documentVersion = 1

// Parse reads a document. Its values are checked when a spec is built from it.
func Parse(text []byte) (Document, error) {
	var d Document
	written, err := decode(text, form())
	if err != nil {
		return d, err
	}
	d = ofForm(written)
	if err := checkVersion(d.Version); err != nil {
		return d, err
	}
	switch {
	case agent.ValidateName(d.Name) != nil:
		return d, invalid("write name: and a word of letters, digits, '-', '_' and '.'", "%.64q is no name of a policy", d.Name)
	case d.Has(settings.Root) && d.Text(settings.Root) != settings.RootWritable && d.Text(settings.Root) != settings.RootReadOnly:
		return d, invalid("write writable or read-only", "files.root: %.64q is neither", d.Text(settings.Root))
	}
	for _, key := range slices.Sorted(maps.Keys(d.Widen)) {
		if reason := d.Widen[key]; len(reason) > reasonMost || strings.ContainsFunc(reason, func(c rune) bool { return !strconv.IsPrint(c) }) {
			return d, invalid(fmt.Sprintf("say why in one line of at most %d bytes", reasonMost), "widen.%s: the reason is no such line", key)
		}
		if d.Widen[key] == "" {
			return d, invalid("say why in a few words", "widen.%s: the reason is empty", key)
		}
		if !isKey(key) {
			return d, invalid(document.Meant(key, keys(), "name a key of the document, such as network or limits.memory"), "widen: there is no key %.64q", key)
		}
	}
	return d, nil
}

// decode reads a text as a form.
func decode(text []byte, form reflect.Type) (reflect.Value, error) {
	if len(text) > MostBytes {
		return reflect.Value{}, invalid("write the values out in fewer lines", "it has %d bytes, and may have %d", len(text), MostBytes)
	}
	written := reflect.New(form)
	err := document.Decode(text, written.Interface())
	return written.Elem(), err
}

func checkVersion(version int) error {
	switch version {
	case documentVersion:
		return nil
	case 0:
		return invalid("write version: 1 in its first line", "it names no version")
	}
	return invalid("this clove reads version 1", "it has version %d", version)
}

func invalid(hint, format string, values ...any) error {
	return &agent.Error{Kind: agent.KindInvalid, Message: fmt.Sprintf(format, values...), Hint: hint}
}
