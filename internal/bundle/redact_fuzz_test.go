package bundle

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

// FuzzRedact: whatever a store contains, the output is JSON, and no value has a secret from a
// place that is not on the list.
func FuzzRedact(f *testing.F) {
	for _, seed := range []string{`{"spec":{"env":["A=$"],"labels":{"a":"$"}}}`, `[{"previous":{"command":["sh","$"]}}]`, `{"spec":{"env":"$","command":{"a":"$"}}}`,
		`{"record":{"denials":[{"target":"$"}],"enforced":{"a":["$"]}}}`, `"$"`, `[["$"]]`, `{"spec":{"command":[["a","$"],"$"]}}`, `{"spec":{"env":[["$"],{"a":"$"},1]}}`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if strings.Contains(text, `\u`) {
			return // it can spell a key that the words below search for
		}
		for path := range harmless() {
			words := strings.FieldsFunc(path, func(r rune) bool { return strings.ContainsRune(".[]{}", r) })
			if strings.Contains(text, words[len(words)-1]) {
				return // its place may be shown
			}
		}
		shown, err := Redact([]byte(strings.ReplaceAll(text, "$", "planted-secret")))
		if err != nil {
			return
		}
		var value any
		decoder := json.NewDecoder(bytes.NewReader(shown))
		decoder.UseNumber() // numbers of any size, as they were stored
		if err := decoder.Decode(&value); err != nil {
			t.Fatal(err)
		}
		// A command's first word, and names of variables, may be shown.
		if !strings.Contains(text, "command") && !strings.Contains(text, "$=") && !strings.Contains(text, "env") && says(value, "planted-secret") {
			t.Errorf("%s comes out of %s", shown, text)
		}
	})
}

// says reports whether a text is in a value; names of keys do not count.
func says(value any, text string) bool {
	switch v := value.(type) {
	case string:
		return strings.Contains(v, text)
	case []any:
		for _, inner := range v {
			if says(inner, text) {
				return true
			}
		}
	case map[string]any:
		for _, inner := range v {
			if says(inner, text) {
				return true
			}
		}
	}
	return false
}
