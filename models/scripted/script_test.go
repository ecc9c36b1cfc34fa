package scripted

import (
	"errors"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/models"
)

// TestExampleShowsEveryKey: docs/script.yaml is a script, and holds each key of it.
func TestExampleShowsEveryKey(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/script.yaml")
	if err != nil {
		t.Fatal(err)
	}
	s, err := ParseScript(text)
	if err != nil {
		t.Fatal(err)
	}
	second := s.Turns[1]
	if len(s.Turns) != 6 || time.Duration(second.Delay) != 200*time.Millisecond || time.Duration(second.Pace) != 10*time.Millisecond ||
		second.Usage.Reasoning != 3 || second.Headers["x-ratelimit-limit-requests"] != "60" || s.Turns[2].Lie.In != -1 || s.Turns[3].Error.Status != 529 {
		t.Errorf("%+v", s)
	}
	for _, of := range []reflect.Type{reflect.TypeFor[Turn](), reflect.TypeFor[ToolCall](), reflect.TypeFor[Error](), reflect.TypeFor[models.Usage]()} {
		for i := range of.NumField() {
			key, _, _ := strings.Cut(of.Field(i).Tag.Get("json"), ",")
			if !strings.Contains(string(text), key+":") {
				t.Errorf("docs/script.yaml does not show %s", key)
			}
		}
	}
}

// refused are scripts with one mistake each, what is said of it, and a part of the hint.
var refused = []struct{ text, message, hint string }{
	{"", "turns: a script has 1 to 10000 turns", "turns: ["},
	{"turns: []", "turns: a script has 1 to 10000 turns", "turns: ["},
	{"turn: [{text: x}]", `there is no key "turn"`, "did you mean turns?"},
	{"turns: [{txt: x}]", `turns.0: there is no key "txt"`, "did you mean text?"},
	{"turns: [{text: x, text: y}]", `the key "text" stands in line 1 already`, "keep one"},
	{"turns: [{match: x}]", "turns.0: the turn answers nothing", "echo: true"},
	{"turns: [{text: x}, {text: x, regexp: '('}]", "turns.1.regexp", "RE2"},
	{"turns: [{text: x, model: 'a b'}]", "turns.0.model", "gpt-*"},
	{"turns: [{text: x, turn: -1}]", "turns.0.turn: -1", "is 1"},
	{"turns: [{text: x, echo: true}]", "echo replaces the text", "remove"},
	{"turns: [{text: x, error: {status: 500}}]", "no other answer", "two turns"},
	{"turns: [{error: {status: 200}}]", "200 is not the status", "429"},
	{"turns: [{endless: true, echo: true}]", "only a text is endless", "nothing else"},
	{"turns: [{endless: true}]", "answers nothing", ""},
	{"turns: [{tool_calls: [{arguments: {}}]}]", "turns.0.tool_calls.0: a tool call needs a name", "name: NAME"},
	{"turns: [{text: xx, repeat: 50000000}]", "turns.0.repeat", "endless"},
	{"turns: [{text: x, repeat: -1}]", "turns.0.repeat", "endless"},
	{"turns: [{text: x, chunk: -1}]", "turns.0.chunk", "leave it out"},
	{"turns: [{text: x, usage: {in: -1}}]", "turns.0.usage", "lie"},
	{"turns: [{text: x, delay: 5}]", "5 is not a time", "90s"},
	{`turns: [{text: x, headers: {"a\r\nb": c}}]`, "is not a header", "name: value"},
	{"{price: {in: 1}, turns: [{text: x}]}", `there is no key "price"`, "the keys here are turns"},
}

func TestMistakesOfAScript(t *testing.T) {
	t.Parallel()
	for _, row := range refused {
		_, err := ParseScript([]byte(row.text))
		var known *agent.Error
		if !errors.As(err, &known) || known.Kind != agent.KindInvalid || !strings.Contains(err.Error(), row.message) || !strings.Contains(known.Hint, row.hint) {
			t.Errorf("%s\n\t%v\n\t%+v", row.text, err, known)
		}
	}
}

// FuzzRequest: any bytes get an answer in each format, and the parts of a text are the text.
func FuzzRequest(f *testing.F) {
	f.Add(`{"model":"m","messages":[{"role":"user","content":"weather?"}],"input":"x"}`, 3)
	f.Add(`{"input":[{"type":"function_call_output","output":[{"text":"a€"}]}],"messages":[{"content":[{"content":"é"}]}]}`, 1)
	f.Fuzz(func(t *testing.T, body string, size int) {
		for path, format := range formats {
			r, err := format.read([]byte(body))
			if err != nil {
				continue
			}
			turn := &Turn{Echo: true, Chunk: max(size, 0)}
			if a := turn.answer(r); strings.Join(turn.chunks(a.text), "") != a.text || a.used.Out < 0 || r.turn < 1 {
				t.Fatalf("%s: %+v of %+v", path, a, r)
			}
		}
	})
}
