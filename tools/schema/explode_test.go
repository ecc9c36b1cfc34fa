package schema

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"golang.org/x/sys/unix"
)

// chain is a schema whose subschemas each apply the next one twice.
func chain(n int, open, ref, closing, last string) string {
	var defs strings.Builder
	for i := range n {
		fmt.Fprintf(&defs, `"a%d":{"$dynamicAnchor":"a%d",%s{"%s":"#a%d"},{"%s":"#a%d"}%s},`, i, i, open, ref, i+1, ref, i+1, closing)
	}
	return fmt.Sprintf(`{"$ref":"#/$defs/a0","$defs":{%s"a%d":{"$dynamicAnchor":"a%d",%s}}}`, defs.String(), n, n, last)
}

func deep(n int) string {
	return strings.Repeat(`{"a":`, n) + "1" + strings.Repeat("}", n)
}

func repeated(n int, text string) string { return strings.TrimSuffix(strings.Repeat(text+",", n), ",") }

// explosions are schemas and arguments for which the library alone takes too long, too much memory
// or the whole stack.
var explosions = []struct{ name, schema, arguments string }{
	{"anyOf", chain(30, `"anyOf":[`, "$ref", "]", `"type":"string"`), `{}`},
	{"allOf", chain(30, `"allOf":[`, "$ref", "]", `"type":"object"`), `{}`},
	{"oneOf", chain(30, `"oneOf":[`, "$ref", "]", `"type":"string"`), `{}`},
	{"dynamicRef", chain(30, `"allOf":[`, "$dynamicRef", "]", `"type":"object"`), `{}`},
	{"in each level of the arguments", `{"properties":{"a":{"allOf":[{"$ref":"#"},{"$ref":"#"}]}}}`, deep(60)},
	{"by two keywords", `{"properties":{"a":{"$ref":"#"}},"patternProperties":{"a":{"$ref":"#"}}}`, deep(60)},
	{"unevaluated", `{"allOf":[{"unevaluatedProperties":{"$ref":"#"}},{"unevaluatedProperties":{"$ref":"#"}}]}`, deep(60)},
	{"a circle", `{"$ref":"#"}`, `{}`},
	{"a circle of two", `{"anyOf":[{"$ref":"#/$defs/a"}],"$defs":{"a":{"not":{"$ref":"#"}}}}`, `{}`},
	{"a circle of dynamic ones", `{"$dynamicAnchor":"a","$dynamicRef":"#a"}`, `{}`},
	{"a pattern", `{"properties":{"a":{"allOf":[` + repeated(400, `{"pattern":"([a-z]?){900}$"}`) + `]}}}`, `{"a":"` + strings.Repeat("a", 40_000) + `1"}`},
	{"a pattern for many", `{"items":{"pattern":"([a-z]?){900}([a-z]?){900}([a-z]?){900}1$"}}`, `[` + repeated(40, `"`+strings.Repeat("a", 1000)+`"`) + `]`},
	{"long texts in reasons", `{"anyOf":[` + repeated(1500, `{"type":"null"}`) + `]}`, `["` + strings.Repeat("x", 40_000) + `"]`},
}

// quick is more than each takes here; the library alone does not end within unending.
const (
	quick    = 5 * time.Second
	unending = time.Second
)

func TestSchemasDoNotExplode(t *testing.T) {
	if name := os.Getenv("CLOVE_TEST_EXPLODE"); name != "" {
		explode(name)
		return
	}
	t.Parallel()
	for _, e := range explosions {
		began := time.Now()
		s, err := Compile(json.RawMessage(e.schema))
		if err == nil {
			err = s.Check(json.RawMessage(e.arguments))
		}
		if took := time.Since(began); took > quick || err == nil || len(err.Error()) > 600 {
			t.Errorf("%s: %s, %v", e.name, took, err)
		}
		if e.name == "long texts in reasons" || e.name == "a pattern for many" {
			continue // bounded, too, but the library alone comes to an end
		}
		if control(t, e.name) {
			t.Errorf("control of %s: the library alone comes to an end, too", e.name)
		}
	}
}

// control reports whether the library alone ends well within a time, in a process of its own with
// a bound on its memory.
func control(t *testing.T, name string) bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), unending)
	defer cancel()
	c := exec.CommandContext(ctx, os.Args[0], "-test.run=^"+t.Name()+"$")
	done := filepath.Join(t.TempDir(), "done")
	c.Env = []string{"CLOVE_TEST_EXPLODE=" + name, "CLOVE_TEST_DONE=" + done}
	_ = c.Run() // it is killed, or fails by itself
	_, err := os.Stat(done)
	return err == nil
}

func explode(name string) {
	if err := unix.Setrlimit(unix.RLIMIT_DATA, &unix.Rlimit{Cur: 1 << 30, Max: 1 << 30}); err != nil {
		panic(err)
	}
	for _, e := range explosions {
		if e.name != name {
			continue
		}
		var s jsonschema.Schema
		var v any
		if json.Unmarshal([]byte(e.schema), &s) != nil || json.Unmarshal([]byte(e.arguments), &v) != nil {
			return
		}
		if r, err := s.Resolve(nil); err == nil {
			_ = r.Validate(v)
			_ = os.WriteFile(os.Getenv("CLOVE_TEST_DONE"), nil, 0o600)
		}
	}
}

// What people write is far from the bound.
func TestLargeArgumentsAreChecked(t *testing.T) {
	t.Parallel()
	s, err := Compile(json.RawMessage(`{"type":"object","properties":{"rows":{"type":"array","uniqueItems":true,"items":{"type":"object","properties":{"id":{"type":"integer"},"name":{"type":"string","pattern":"^[a-z]+$"}},"required":["id","name"],"additionalProperties":false}},
		"tree":{"$ref":"#/$defs/tree"},"text":{"type":"string","maxLength":100000}},"$defs":{"tree":{"type":"object","properties":{"children":{"type":"array","items":{"$ref":"#/$defs/tree"}}},"additionalProperties":{"type":"string"}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	var rows []string
	for i := range 1000 {
		rows = append(rows, fmt.Sprintf(`{"id":%d,"name":"some"}`, i))
	}
	tree := strings.Repeat(`{"name":"x","children":[`, 20) + "{}" + strings.Repeat("]}", 20)
	for _, arguments := range []string{`{"rows":[` + strings.Join(rows, ",") + `]}`, `{"tree":` + tree + `}`, `{"text":"` + strings.Repeat("y", 48_000) + `"}`} {
		if err := s.Check(json.RawMessage(arguments)); err != nil {
			t.Errorf("%.80s: %v", arguments, err)
		}
	}
}

// Whatever the schema and the arguments are, an answer comes soon.
func FuzzCheck(f *testing.F) {
	f.Add(example, `{"path":"x","n":3}`)
	for _, e := range explosions {
		f.Add(e.schema, e.arguments)
	}
	f.Add(`{"if":{"type":"object"},"then":{"minProperties":1},"else":false}`, `[1]`)
	f.Add(`{"prefixItems":[true],"items":{"contains":{"const":1}},"uniqueItems":true}`, `[1,[1],[1]]`)
	f.Add(`{"dependentSchemas":{"a":{"$dynamicRef":"#x"}},"$dynamicAnchor":"x"}`, `{"a":1}`)
	f.Fuzz(func(t *testing.T, schema, arguments string) {
		began := time.Now()
		s, err := Compile(json.RawMessage(schema))
		if err == nil && len(arguments) < 48<<10 {
			err = s.Check(json.RawMessage(arguments))
		}
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("it takes %s: %v", took, err)
		}
	})
}
