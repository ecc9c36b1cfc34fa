package imports

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"clove.run/clove/internal/document"
	"clove.run/clove/policies"
)

// wroteHint is for files in the wrong language.
const wroteHint = "docker, sandbox-runtime and Claude Code write JSON, Codex writes TOML"

// inTOML tells the two languages apart: a file in JSON begins with a brace, and one in TOML
// cannot.
func inTOML(f File) bool {
	return f.System == Codex || f.System == "" && !bytes.HasPrefix(bytes.TrimSpace(f.Text), []byte("{"))
}

// parse returns the keys at the top.
func parse(f File) (map[string]any, error) {
	root := map[string]any{}
	if inTOML(f) {
		err := toml.Unmarshal(f.Text, &root)
		var wrong *toml.DecodeError
		if errors.As(err, &wrong) {
			line, _ := wrong.Position()
			err = fmt.Errorf("line %d: %s", line, strings.TrimPrefix(wrong.Error(), "toml: "))
		}
		if err != nil {
			return nil, invalid(wroteHint, "it cannot be read as TOML: %s", document.Shown(err.Error()))
		}
		return root, nil
	}
	decoder := json.NewDecoder(bytes.NewReader(f.Text))
	if err := decoder.Decode(&root); err != nil {
		return nil, invalid(wroteHint, "it cannot be read as an object of JSON: %s", document.Shown(strings.TrimPrefix(err.Error(), "json: ")))
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, invalid("remove what follows the last brace", "something follows its settings")
	}
	return root, nil
}

// reader goes through the settings of one file.
type reader struct {
	reading
	plan
	kept    map[string]any // settings that mean something only together
	proxied bool           // those of Codex's proxy were read
}

// reading is what was found in the file, apart from what it asks for.
type reading struct {
	file    File
	seen    []string // all settings, by their names
	left    []string // those that File.Skip left out
	refused []refusal
	mistake error // the first value of a wrong type
}

// refusal is a setting that cannot be carried.
type refusal struct{ setting, why string }

// row reads one setting.
type row func(r *reader, at string, value any)

// rows are the settings of one table, by their keys.
type rows map[string]row

// each reads all keys of a table. A null is as if the key were not there.
func (r *reader) each(at string, value any, known rows) {
	table := r.table(at, value)
	for _, key := range slices.Sorted(maps.Keys(table)) {
		name := join(at, key)
		switch read := known[key]; {
		case table[key] == nil || r.skips(name):
		case read == nil:
			names := slices.Sorted(maps.Keys(known))
			r.refuse(name, "no such setting is known; %s", policies.Meant(key, names, "the keys there are "+few(names)))
		default:
			read(r, name, table[key])
		}
	}
}

// few shortens a long list of names.
func few(names []string) string {
	if len(names) > 12 {
		return strings.Join(names[:12], ", ") + " and others"
	}
	return strings.Join(names, ", ")
}

// skips reports whether the setting is left out, and notes that it exists.
func (r *reading) skips(setting string) bool {
	r.seen = append(r.seen, setting)
	if !slices.Contains(r.file.Skip, setting) {
		return false
	}
	if !slices.Contains(r.left, setting) {
		r.left = append(r.left, setting)
	}
	return true
}

func (r *reading) refuse(setting, format string, values ...any) {
	r.refused = append(r.refused, refusal{setting, fmt.Sprintf(format, values...)})
}

// wrong notes a value of a wrong type.
func (r *reading) wrong(at, what string) {
	if r.mistake == nil {
		r.mistake = invalid("correct the file: its own program refuses it, too", "%s: %s belongs there", document.Shown(orFile(at)), what)
	}
}

func orFile(at string) string {
	if at == "" {
		return "the file"
	}
	return at
}

func (r *reading) table(at string, value any) map[string]any {
	table, ok := value.(map[string]any)
	if !ok {
		r.wrong(at, "a table of keys")
	}
	return table
}

func (r *reading) truth(at string, value any) bool {
	truth, ok := value.(bool)
	if !ok {
		r.wrong(at, "true or false")
	}
	return truth
}

func (r *reading) text(at string, value any) string {
	text, ok := value.(string)
	if !ok {
		r.wrong(at, "a text")
	}
	return text
}

// items calls read for each text of a list that is not left out; its name is the setting's with
// = and the text.
func (r *reading) items(at string, value any, read func(setting, text string)) {
	list, ok := value.([]any)
	if !ok {
		r.wrong(at, "a list of texts")
	}
	for _, item := range list {
		text, ok := item.(string)
		if !ok {
			r.wrong(at, "a list of texts")
			return
		}
		if setting := at + "=" + text; !r.skips(setting) {
			read(setting, text)
		}
	}
}

// problem is the error of the whole file, if it has one.
func (r *reading) problem() error {
	for _, skip := range r.file.Skip {
		if r.mistake == nil && !slices.Contains(r.left, skip) {
			return invalid(policies.Meant(skip, r.seen, "omit it, or write the name as the error has it"), "--skip %s: the file has no such setting", document.Shown(skip))
		}
	}
	if r.mistake != nil || len(r.refused) == 0 {
		return r.mistake
	}
	var texts []string
	for _, one := range r.refused {
		texts = append(texts, document.Shown(one.setting)+" ("+document.Shown(one.why)+")")
	}
	return invalid("to leave one out, repeat the command with --skip '"+document.Shown(r.refused[0].setting)+"', and so for each; a comment will say so",
		"%d of the settings cannot be carried: %s", len(texts), strings.Join(texts, "; "))
}

func join(at, key string) string {
	if at == "" {
		return key
	}
	return at + "." + key
}

// empty reports whether a value asks for nothing.
func empty(value any) bool {
	switch v := value.(type) {
	case bool:
		return !v
	case string:
		return v == ""
	case []any:
		return len(v) == 0
	case map[string]any:
		return len(v) == 0
	}
	return value == nil
}

// refuses is the row of a setting that cannot be carried unless it asks for nothing.
func refuses(why string) row {
	return func(r *reader, at string, value any) {
		if !empty(value) {
			r.refuse(at, "%s", why)
		}
	}
}

// becomes is the row of a setting that needs no key of a document, unless it asks for nothing.
func becomes(note string) row {
	return func(r *reader, at string, value any) {
		if !empty(value) {
			r.note(at, "%s", note)
		}
	}
}

// always is the row of a setting whose two values need no key of a document.
func always(whenTrue, whenFalse string) row {
	return func(r *reader, at string, value any) {
		if r.truth(at, value) {
			r.note(at, "%s", whenTrue)
		} else {
			r.note(at, "%s", whenFalse)
		}
	}
}

// program is the row of a setting of the program itself, which no sandbox holds.
func program(r *reader, at string, _ any) { r.own = append(r.own, at) }
