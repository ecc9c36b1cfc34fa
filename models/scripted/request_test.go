package scripted

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// What a request is to a script, in each format.
func TestRequests(t *testing.T) {
	t.Parallel()
	chat, responses, messages := "POST /v1/chat/completions", "POST /v1/responses", "POST /v1/messages"
	for _, row := range []struct {
		path, body string
		last       string
		turn       int
		bytes      int64
		most       int64
	}{
		{chat, `{}`, "", 1, 0, 0},
		{chat, `{"messages":[{"role":"developer","content":"abc"},{"role":"user","content":"de"},{"role":"system","content":"f"}]}`, "de", 1, 6, 0},
		{chat, `{"messages":[{"role":"user","content":"a"},{"role":"user","content":"b"}]}`, "a\nb", 1, 2, 0},
		{chat, `{"messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"image_url","image_url":{"url":"data:x"}},{"type":"text","text":"b"}]}]}`, "a\nb", 1, 3, 0},
		{chat, `{"max_tokens":5,"max_completion_tokens":7,"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"},{"role":"assistant","content":"c"}]}`, "a", 2, 3, 7},
		{chat, `{"messages":[{"role":"user","content":"a"},{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":"{}"}}]},{"role":"tool","content":"r"}]}`, "r", 2, 5, 0},
		{chat, `{"messages":[{"role":"user","content":7}]}`, "7", 1, 1, 0},
		{responses, `{"input":"hello","instructions":"brief","max_output_tokens":9}`, "hello", 1, 10, 9},
		{responses, `{"input":[{"role":"user","content":"a"},{"role":"assistant","content":[{"type":"output_text","text":"b"}]},{"type":"message","role":"user","content":"c"}]}`, "c", 2, 3, 0},
		{responses, `{"input":[{"role":"user","content":"a"},{"type":"custom_tool_call","name":"f","input":"x"},{"type":"custom_tool_call_output","output":[{"type":"input_text","text":"r"}]}]}`, "r", 2, 3, 0},
		{responses, `{"input":[{"type":"function_call","name":"f","arguments":{"a":1}},{"type":"function_call_output","output":{"ok":true}}]}`, `{"ok":true}`, 2, 19, 0},
		{messages, `{"system":"abc","max_tokens":3,"messages":[{"role":"user","content":"d"}]}`, "d", 1, 4, 3},
		{messages, `{"messages":[{"role":"user","content":[{"type":"tool_result","content":"r"},{"type":"text","text":"go on"}]}]}`, "r\ngo on", 1, 7, 0},
		{messages, `{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":[{"type":"thinking","thinking":"hm"},{"type":"tool_use","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","content":[{"type":"text","text":"r"}]}]}]}`, "r", 2, 5, 0},
	} {
		r, err := formats[row.path].read([]byte(row.body))
		if err != nil || r.last != row.last || r.turn != row.turn || r.bytes != row.bytes || r.most != row.most || r.n != 1 {
			t.Errorf("%s %s: %+v, %v", row.path, row.body, r, err)
		}
	}
	for path, format := range formats {
		for _, body := range []string{"", "[]", `{"model":1}`, `{"stream":"yes"}`} {
			if _, err := format.read([]byte(body)); err == nil {
				t.Errorf("%s: %q is a request", path, body)
			}
		}
	}
}

// The pieces of a text are the text, each of whole characters and no longer than asked.
func TestChunks(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOf(rapid.RuneFrom([]rune("ab é€𝄞\n"))).Draw(t, "text")
		size := rapid.IntRange(1, 9).Draw(t, "size")
		pieces := (&Turn{Chunk: size}).chunks(text)
		for _, piece := range pieces {
			if len(piece) > max(size, 4) || len([]rune(piece)) > 1 && len(piece) > size || strings.ToValidUTF8(piece, "") != piece || piece == "" {
				t.Fatalf("%q in pieces of %d: %q", text, size, pieces)
			}
		}
		if strings.Join(pieces, "") != text {
			t.Fatalf("%q in pieces of %d: %q", text, size, pieces)
		}
	})
}

func TestArguments(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                         "{}",
		", arguments: {}":          "{}",
		", arguments: {b: 1, a: }": `{"a":null,"b":1}`,
		", arguments: [1, x]":      `[1,"x"]`,
		", arguments: '{\"a\":'":   `{"a":`,
		", arguments: ''":          "",
	} {
		s, err := ParseScript([]byte("turns: [{tool_calls: [{name: f" + text + "}]}]"))
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got := s.Turns[0].ToolCalls[0].line(); got != want {
			t.Errorf("%s: %s", text, got)
		}
	}
}
