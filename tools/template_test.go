package tools

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

const shape = `{"type":"object","properties":{"a":{"type":"string"},"n":{"type":["integer","null"]},"list":{"type":"array"},"o":{"type":"object"},"any":true}}`

func TestCommandsAreChecked(t *testing.T) {
	for _, row := range []struct {
		template []string
		want     string // of the error; empty: it is good
	}{
		{[]string{"prog", "{a}", "--n={n}", "{list}", "{any}", "{{b}}", "{b c}", "{}", "}{"}, ""},
		{[]string{"prog"}, ""},
		{nil, "no program"},
		{[]string{""}, "no program"},
		{[]string{"{a}"}, "has a placeholder"},
		{[]string{"/bin/{a}", "x"}, "has a placeholder"},
		{[]string{"bin/prog"}, "absolute path"},
		{[]string{"prog", "{b}"}, "no property for {b}"},
		{[]string{"prog", "x{A}"}, "no property for {A}"},
		{[]string{"prog", "{o}"}, "is an object"},
		{[]string{"prog", "--list={list}"}, "must be a word of its own"},
		{[]string{"prog", "a\x00"}, "NUL"},
		{[]string{"prog", strings.Repeat("x", maxTemplate)}, "more than"},
		{make([]string, maxTemplateWord+1), "no program"},
	} {
		err := ValidateCommand(row.template, json.RawMessage(shape))
		if (err == nil) != (row.want == "") || err != nil && !strings.Contains(err.Error(), row.want) {
			t.Errorf("%.100q: %v", row.template, err)
		}
	}
	if err := ValidateCommand([]string{"prog", "{a}"}, nil); err == nil {
		t.Error("there is no schema, and a placeholder")
	}
	if err := ValidateCommand([]string{"prog"}, json.RawMessage(`[`)); err == nil {
		t.Error("the schema is no JSON")
	}
}

func TestCommandsAreExpanded(t *testing.T) {
	for _, row := range []struct {
		template  []string
		arguments string
		want      []string // nil: an error
	}{
		{[]string{"p", "{a}", "n={n}", "{b}"}, `{"a":"x; rm -rf $HOME 'q' \"r\"\n","n":1e400,"b":false}`, []string{"p", "x; rm -rf $HOME 'q' \"r\"\n", "n=1e400", "false"}},
		{[]string{"p", "{list}", "{none}", "x{none}y", "{null}", "{empty}", "z"}, `{"list":["a",2,true,""],"null":null,"empty":[]}`, []string{"p", "a", "2", "true", "", "z"}},
		{[]string{"p", "{a}{b}-{a}"}, `{"a":"{b}","b":"{a}"}`, []string{"p", "{b}{a}-{b}"}}, // values are no templates
		{[]string{"p", "{{a}}", "{ a}", "", "{}"}, `{"a":1}`, []string{"p", "{a}", "{ a}", "", "{}"}},
		{[]string{"p{{x}}"}, `{}`, []string{"p{x}"}},
		{[]string{"p", "a"}, ``, []string{"p", "a"}},
		// Options of the template are its author's; those of a caller are refused.
		{[]string{"p", "-{a}", "--x={a}"}, `{"a":"-b"}`, []string{"p", "--b", "--x=-b"}},
		{[]string{"p", "{a}"}, `{"a":"-x"}`, nil},
		{[]string{"p", "{a}"}, `{"a":-5}`, nil},
		{[]string{"p", "{a}{b}"}, `{"a":"","b":"-x"}`, nil},
		{[]string{"p", "{a}-x"}, `{"a":""}`, nil},
		{[]string{"p", "{list}"}, `{"list":["a","--x"]}`, nil},
		{[]string{"p", "--", "{a}", "{list}"}, `{"a":"-x","list":["-y"]}`, []string{"p", "--", "-x", "-y"}},
		{[]string{"p", "{a}", "--"}, `{"a":"-x"}`, nil},
		{[]string{"p", "{a}", "{b}"}, `{"a":"--","b":"x"}`, nil}, // a caller cannot end the options either
		{[]string{"p", "x{a}"}, `{"a":"b\u0000c"}`, nil},
		{[]string{"p", "{list}"}, `{"list":["\u0000"]}`, nil},
		{[]string{"p", "x{list}"}, `{"list":["a"]}`, nil},
		{[]string{"p", "{o}"}, `{"o":{}}`, nil},
		{[]string{"p", "{list}"}, `{"list":[[1]]}`, nil},
		{[]string{"p"}, `[1]`, nil},
		{nil, `{}`, nil},
	} {
		got, err := Expand(row.template, json.RawMessage(row.arguments))
		if (err != nil) != (row.want == nil) || err == nil && !slices.Equal(got, row.want) {
			t.Errorf("%q with %s: %q, %v", row.template, row.arguments, got, err)
		}
	}
}

// Whatever the arguments are, the program and the template's own words stay, no word is an option
// that the template does not have, and none has a NUL byte.
func FuzzExpand(f *testing.F) {
	f.Add("{a}", "x", "y")
	f.Add("pre{a}{b}", "-x", "")
	f.Add("{a}{b}", "", "-x")
	f.Add("{{a}}{a", "{b}", "\x00")
	f.Fuzz(func(t *testing.T, word, a, b string) {
		arguments, err := json.Marshal(map[string]any{"a": a, "b": b, "list": []string{a, b}})
		if err != nil {
			t.Fatal(err)
		}
		template := []string{"prog", word, "{list}", "last"}
		err = ValidateCommand(template, json.RawMessage(`{"properties":{"a":{},"b":{},"list":{"type":"array"}}}`))
		if err != nil {
			return
		}
		words, err := Expand(template, arguments)
		if err != nil {
			return
		}
		if words[0] != "prog" || words[len(words)-1] != "last" {
			t.Errorf("%q", words)
		}
		for i, w := range words[1:] {
			if strings.ContainsRune(w, 0) || strings.HasPrefix(w, "-") && (i != 0 || !strings.HasPrefix(word, "-")) && word != "--" {
				t.Errorf("%q with %q and %q becomes %q", word, a, b, words)
			}
		}
	})
}
