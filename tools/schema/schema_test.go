package schema

import (
	"encoding/json"
	"strings"
	"sync"
	"testing"

	"clove.run/clove/tools"
)

func TestTheBuiltinsSchemas(t *testing.T) {
	t.Parallel()
	for _, d := range tools.Builtins() {
		for _, text := range []json.RawMessage{d.Arguments, d.Result} {
			if text == nil {
				continue
			}
			if _, err := Compile(text); err != nil {
				t.Errorf("%s: %v", d.Name, err)
			}
		}
	}
}

const example = `{"type":"object","properties":{
	"path":{"type":"string","minLength":1,"maxLength":5},"n":{"type":"integer","minimum":1,"maximum":9},"mode":{"enum":["a","b"]},
	"list":{"type":"array","maxItems":2,"items":{"type":"object","properties":{"x":{"type":["number","null"]}},"required":["x"]}},
	"even":{"multipleOf":2},"either":{"anyOf":[{"type":"string"},{"type":"boolean"}]},"ref":{"$ref":"#/$defs/s"},"map":{"type":"object","additionalProperties":{"type":"string"}}},
	"required":["path"],"additionalProperties":false,"$defs":{"s":{"type":"string"}}}`

// An error names the argument and what is expected, in a line.
func TestErrorsAreForModels(t *testing.T) {
	t.Parallel()
	s, err := Compile(json.RawMessage(example))
	if err != nil {
		t.Fatal(err)
	}
	for arguments, want := range map[string]string{
		`{"path":"x","n":3,"mode":"a","list":[{"x":1},{"x":null}],"even":4,"either":true,"ref":"r","map":{"k":"v"}}`: "",
		``:                                "the arguments: \"path\" is missing",
		`[]`:                              "the arguments: it must be object, and is array",
		`{"path":1}`:                      "argument path: it must be string, and is number",
		`{"path":""}`:                     "argument path: it must be at least 1 characters, and is 0",
		`{"path":"äöüäöü"}`:               "argument path: it must be at most 5 characters, and is 6",
		`{"path":"x","n":1.5}`:            "argument n: it must be integer, and is number",
		`{"path":"x","n":10}`:             "argument n: it must be at most 9, and is 10",
		`{"path":"x","mode":"c"}`:         `argument mode: it must be one of ["a","b"]`,
		`{"path":"x","list":[{"x":"y"}]}`: "argument list[0].x: it must be number or null, and is string",
		`{"path":"x","list":[{}]}`:        `argument list[0]: "x" is missing`,
		`{"path":"x","list":[1,2,3]}`:     "argument list: it must be at most 2 elements, and is 3",
		`{"path":"x","map":{"k":1}}`:      "argument map.k: it must be string, and is number",
		`{"path":"x","paht":1}`:           `the arguments: there is no "paht"; there are either, even, list, map, mode, n, path, ref`,
		`{"path":"x","even":3}`:           "multipleOf",
		`{"path":"x","either":3}`:         "anyOf",
		`{"path":"x","ref":3}`:            "/$defs/s",
		`{"path"`:                         "the arguments: this is no JSON: unexpected end of JSON input",
		`{"path":"x"} {}`:                 "this is no JSON",
		strings.Repeat("[", 100):          "more than 64 levels",
		`{"path":"x","ref":` + strings.Repeat("[1,", 50) + "1" + strings.Repeat("]", 50) + "}": "/$defs/s",
		`{"path":"x","either":["` + strings.Repeat("x", 40_000) + `"]}`:                        "anyOf",
	} {
		err := s.Check(json.RawMessage(arguments))
		if (err == nil) != (want == "") || err != nil && (!strings.Contains(err.Error(), want) || len(err.Error()) > 600) {
			t.Errorf("%.100s: %v", arguments, err)
		}
	}
}

func TestSchemasThatAreRefused(t *testing.T) {
	t.Parallel()
	nested := func(n int) string {
		return strings.Repeat(`{"not":`, n) + "true" + strings.Repeat("}", n)
	}
	for text, want := range map[string]string{
		``:                              "no JSON",
		`3`:                             "neither an object",
		`{"properties":3}`:              "properties has no schemas",
		`{"type":3}`:                    "type",
		`{"pattern":"("}`:               "pattern",
		`{"pattern":"(?=a)"}`:           "pattern",
		`{"patternProperties":{"[":1}}`: "neither",
		`{"$schema":"http://json-schema.org/draft-04/schema#"}`:                   "$schema",
		`{"$ref":"http://127.0.0.1:1/x"}`:                                         "nothing is loaded",
		`{"$ref":"file:///etc/passwd"}`:                                           "nothing is loaded",
		`{"$ref":"other.json"}`:                                                   "nothing is loaded",
		`{"$ref":"#/$defs/gone"}`:                                                 "nothing is loaded",
		`{"$dynamicRef":"#gone"}`:                                                 "nothing is loaded",
		`{"$id":"http://h/x#frag"}`:                                               "$id",
		nested(maxDepth + 1):                                                      "levels",
		`{"allOf":[` + strings.Repeat("true,", maxSubschemas) + `1]}`:             "subschemas",
		`{"title":"` + strings.Repeat("x", tools.MaxSchema) + `"}`:                "more than 32768 bytes",
		`{"pattern":"((a{30}){30}){30}"}`:                                         "pattern",
		`{"allOf":[` + strings.Repeat(`{"pattern":"(b?){999}"},`, 100) + `true]}`: "patterns are too large",
	} {
		_, err := Compile(json.RawMessage(text))
		if err == nil || !strings.Contains(err.Error(), want) || len(err.Error()) > 600 {
			t.Errorf("%.100s: %v", text, err)
		}
	}
	for _, text := range []string{`true`, `{}`, nested(30), `{"$schema":"http://json-schema.org/draft-07/schema#","items":[{"type":"string"}],"definitions":{"a":{"$id":"#a"}},"dependencies":{"a":["b"],"c":{}}}`,
		`{"$id":"http://h/s","$defs":{"a":{"$id":"a","$defs":{"b":{"$anchor":"c"}}}},"properties":{"x":{"$ref":"a#/$defs/b"},"y":{"$ref":"http://h/a#c"},"z":{"$ref":"#/$defs/a"}}}`} {
		if _, err := Compile(json.RawMessage(text)); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestOneSchemaChecksManyAtOnce(t *testing.T) {
	t.Parallel()
	s, err := Compile(json.RawMessage(example))
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 100 {
				if err := s.Check(json.RawMessage(`{"path":"x","either":true}`)); err != nil {
					t.Error(err)
				}
				if err := s.Check(json.RawMessage(`{"path":"x","either":1}`)); err == nil {
					t.Error("it fits")
				}
			}
		})
	}
	all.Wait()
}
