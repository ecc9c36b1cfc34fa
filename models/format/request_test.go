package format

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"clove.run/clove/models"
)

func mustParse(t *testing.T, f models.Format, body string) *Request {
	t.Helper()
	r, err := Parse(f, []byte(body))
	if err != nil {
		t.Fatalf("%s %.200s: %v", f, body, err)
	}
	return r
}

// bodies are requests as clients send them. All pass without a need.
var bodies = []struct {
	name   string
	format models.Format
	body   string
	stream bool
	out, n int64
	tiers  []string
}{
	{"chat with tools", models.OpenAIChat, `{"model":"gpt-5-mini","messages":[{"role":"system","content":"You fix bugs."},{"role":"user","content":"List the files."},
		{"role":"assistant","content":null,"tool_calls":[{"id":"call_a1","type":"function","function":{"name":"ls","arguments":"{\"path\":\".\"}"}}]},
		{"role":"tool","tool_call_id":"call_a1","content":"main.go\nsee https://example.com"}],
		"tools":[{"type":"function","function":{"name":"ls","description":"lists","strict":true,"parameters":{"type":"object","properties":{"path":{"type":"string"},"id":{"type":"string","format":"uri"}},"required":["path"],"additionalProperties":false}}}],
		"tool_choice":"auto","stream":true,"stream_options":{"include_usage":true},"max_tokens":800,"temperature":0.2,"n":2,"service_tier":"flex"}`, true, 800, 2, []string{"service_tier=flex"}},
	{"chat of a framework", models.OpenAIChat, `{"model":"qwen3","messages":[{"role":"user","content":[{"type":"text","text":"What is this?"},{"type":"image_url","image_url":{"url":"data:image/png;base64,iVBORw0KGgo=","detail":"low"}}]},
		{"role":"assistant","content":"A cat.","reasoning_content":"It has ears."}],"max_completion_tokens":100,"reasoning_effort":"low","chat_template_kwargs":{"enable_thinking":false},"top_k":20,"user":"u1",
		"response_format":{"type":"json_schema","json_schema":{"name":"a","strict":true,"schema":{"type":"object","properties":{"url":{"type":"string"}}}}}}`, false, 100, 1, nil},
	{"responses of a coding agent", models.OpenAIResponses, `{"model":"gpt-5-codex","instructions":"You are a coding agent.","input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"Fix it."}]},
		{"type":"reasoning","summary":[{"type":"summary_text","text":"Look."}],"content":null,"encrypted_content":"gAAAAAB"},
		{"type":"function_call","name":"shell","arguments":"{\"command\":[\"ls\"]}","call_id":"call_1"},{"type":"function_call_output","call_id":"call_1","output":"main.go"},
		{"type":"custom_tool_call","call_id":"call_2","name":"apply_patch","input":"*** Begin Patch"},{"type":"custom_tool_call_output","call_id":"call_2","output":"Done"}],
		"tools":[{"type":"function","name":"shell","description":"d","strict":false,"parameters":{"type":"object"}},{"type":"custom","name":"apply_patch","description":"d","format":{"type":"grammar","syntax":"lark","definition":"start: x"}}],
		"tool_choice":"auto","parallel_tool_calls":false,"reasoning":{"effort":"medium","summary":"auto"},"store":false,"stream":true,"include":["reasoning.encrypted_content"],"prompt_cache_key":"0199-ab","text":{"verbosity":"low"},
		"client_metadata":{"x-installation-id":"1"}}`, true, 0, 1, nil},
	{"responses in one line", models.OpenAIResponses, `{"model":"gpt-5","input":"Say hello.","max_output_tokens":64}`, false, 64, 1, nil},
	{"messages of a coding agent", models.AnthropicMessages, `{"model":"claude-sonnet-4-5","max_tokens":32000,"system":[{"type":"text","text":"You are a coding agent.","cache_control":{"type":"ephemeral","ttl":"1h"}}],
		"messages":[{"role":"user","content":[{"type":"text","text":"Fix it."},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBORw0KGgo="}},{"type":"document","source":{"type":"text","media_type":"text/plain","data":"see https://example.com"},"title":"t"}]},
		{"role":"assistant","content":[{"type":"thinking","thinking":"Look.","signature":"EqQB"},{"type":"redacted_thinking","data":"EmwK"},{"type":"tool_use","id":"toolu_1","name":"Bash","input":{"command":"ls","url":"https://example.com","type":"x"}}]},
		{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","is_error":false,"content":[{"type":"text","text":"main.go"}],"cache_control":{"type":"ephemeral"}}]}],
		"tools":[{"name":"Bash","description":"d","input_schema":{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","properties":{"file_path":{"type":"string"}}},"eager_input_streaming":true},{"type":"text_editor_20250728","name":"str_replace_based_edit_tool"}],
		"tool_choice":{"type":"auto","disable_parallel_tool_use":true},"thinking":{"type":"enabled","budget_tokens":1024},"metadata":{"user_id":"user_ab_account__session_cd"},"stream":true,
		"output_config":{"effort":"high"},"context_management":{"edits":[{"type":"clear_thinking_20251015","keep":"all"},{"type":"clear_tool_uses_20250919","trigger":{"type":"input_tokens","value":100000},"keep":{"type":"tool_uses","value":3}}]}}`, true, 32000, 1, []string{"ttl=1h"}},
	{"count", models.AnthropicCount, `{"model":"claude-sonnet-4-5","system":"You count.","messages":[{"role":"user","content":"How many?"}],"tools":[],"thinking":{"type":"adaptive"}}`, false, 0, 1, nil},
}

func TestBodiesOfClients(t *testing.T) {
	t.Parallel()
	for _, row := range bodies {
		r := mustParse(t, row.format, row.body)
		if r.Needs != nil || r.Stream != row.stream || r.Out != row.out || r.N != row.n || !slices.Equal(r.Tiers, row.tiers) {
			t.Errorf("%s: %+v", row.name, r)
		}
		if !strings.Contains(row.body, `"`+r.Model+`"`) || r.In <= 0 || r.Usage != strings.Contains(row.body, "include_usage") {
			t.Errorf("%s: model %q, in %d, usage %t", row.name, r.Model, r.In, r.Usage)
		}
	}
}

func TestEstimate(t *testing.T) {
	t.Parallel()
	in := func(f models.Format, body string) int64 { return mustParse(t, f, body).In }
	chat := func(parts string) int64 {
		return in(models.OpenAIChat, `{"model":"m","messages":[{"role":"user","content":[`+parts+`]}]}`)
	}
	none := chat("")
	text := func(s string) int64 { return chat(`{"type":"text","text":"` + s + `"}`) }
	long := strings.Repeat("abc", 1000)
	if got := text(long) - text(""); got != 1000 {
		t.Errorf("3000 bytes are %d tokens", got)
	}
	if got := text(strings.Repeat(`\u00e9\n`, 1000)) - text(""); got < 1000 || got > 1400 {
		t.Errorf("1000 escaped letters and lines are %d tokens", got)
	}
	image := func(data string) int64 {
		return chat(`{"type":"image_url","image_url":{"url":"data:image/png;base64,` + data + `"}}`)
	}
	if small, large := image(""), image(strings.Repeat("A", 1<<20)); small != large || small-none < ImageTokens || small-none > ImageTokens+20 {
		t.Errorf("images are %d and %d tokens above %d", small, large, none)
	}
	pdf := chat(`{"type":"file","file":{"file_data":"data:application/pdf;base64,` + strings.Repeat("A", 10000) + `"}}`)
	if pdf-none < 1000 || pdf-none > 1020 {
		t.Errorf("10000 bytes of a document are %d tokens", pdf-none)
	}
	source := func(kind, media, data string) int64 {
		return in(models.AnthropicMessages, fmt.Sprintf(`{"model":"m","messages":[{"role":"user","content":[{"type":"document","source":{"type":%q,"media_type":%q,"data":%q}}]}]}`, kind, media, data))
	}
	if got := source("text", "text/plain", long) - source("text", "text/plain", ""); got != 1000 {
		t.Errorf("3000 bytes of a plain document are %d tokens", got)
	}
	if got := source("base64", "application/pdf", long) - source("base64", "application/pdf", ""); got != 300 {
		t.Errorf("3000 bytes of a document are %d tokens", got)
	}
}

func TestFiguresOfARequest(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		f      models.Format
		fields string
		out, n int64
	}{
		{models.OpenAIChat, ``, 0, 1},
		{models.OpenAIChat, `"n":null,"max_tokens":null,"stream":null,"stream_options":null`, 0, 1},
		{models.OpenAIChat, `"n":128,"max_completion_tokens":1073741824`, MaxOut, 128},
		{models.OpenAIChat, `"max_completion_tokens":null,"max_tokens":7`, 7, 1},
		{models.OpenAIResponses, `"max_output_tokens":7`, 7, 1},
		{models.AnthropicMessages, `"max_tokens":0`, 0, 1},
		{models.AnthropicCount, `"max_tokens":9`, 0, 1},
	} {
		if r := mustParse(t, row.f, base(row.f, "", row.fields)); r.Out != row.out || r.N != row.n {
			t.Errorf("%s %s: %+v", row.f, row.fields, r)
		}
	}
	for fields, want := range map[string]bool{`"stream":true`: true, `"stream":false`: false, `"stream":null`: false} {
		r := mustParse(t, models.OpenAIChat, base(models.OpenAIChat, "", fields+`,"stream_options":{"include_usage":true}`))
		if r.Usage != want || r.Stream != want {
			t.Errorf("%s: %+v", fields, r)
		}
	}
	for fields, message := range map[string]string{
		`"n":0`: "n:", `"n":-1`: "n:", `"n":129`: "n:", `"n":1.0`: "n:", `"n":"2"`: "n:", `"n":[1]`: "n:",
		`"max_tokens":0`: "max_tokens", `"max_tokens":-1`: "max_tokens", `"max_tokens":1e3`: "max_tokens", `"max_tokens":1073741825`: "max_tokens", `"max_tokens":99999999999999999999`: "max_tokens",
		`"max_tokens":5,"max_completion_tokens":5`: "too", `"stream":"true"`: "stream", `"stream":1`: "stream", `"stream_options":true`: "object", `"stream_options":{"include_usage":1}`: "include_usage",
		`"n_predict":5`: "not supported", `"best_of":5`: "not supported",
	} {
		refused(t, models.OpenAIChat, base(models.OpenAIChat, "", fields), Invalid, message)
	}
	refused(t, models.OpenAIResponses, base(models.OpenAIResponses, "", `"max_tokens":5`), Invalid, "not supported")
	refused(t, models.AnthropicMessages, base(models.AnthropicMessages, "", `"max_tokens":-1`), Invalid, "max_tokens")
}

func TestNamesOfModels(t *testing.T) {
	t.Parallel()
	for model, passes := range map[string]bool{
		`"gpt-5"`: true, `"anthropic/claude:beta@1"`: true, `"модель"`: true, `"` + strings.Repeat("m", maxModel) + `"`: true,
		`""`: false, `null`: false, `7`: false, `["m"]`: false, `"a b"`: false, `"a\nb"`: false, `"a\u0000"`: false, `"\ud800"`: false, `"` + strings.Repeat("m", maxModel+1) + `"`: false,
	} {
		if _, err := Parse(models.OpenAIChat, []byte(`{"messages":[],"model":`+model+`}`)); (err == nil) != passes {
			t.Errorf("%.40s: %v", model, err)
		}
	}
	refused(t, models.OpenAIChat, `{"messages":[]}`, Invalid, "missing")
	refused(t, models.Format("other"), smallest, NotFound, "other")
}

// The maximum of Anthropic's reasoning must stay below that of the output. Elsewhere, and where it
// is no number, it bounds nothing.
func TestTheLeastMaximumOfARequest(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		f    models.Format
		more string
		want int64
	}{
		{models.AnthropicMessages, `"thinking":{"type":"enabled","budget_tokens":31999}`, 32000},
		{models.AnthropicMessages, `"thinking":{"type":"adaptive"}`, 0},
		{models.AnthropicMessages, `"thinking":null`, 0},
		{models.AnthropicMessages, `"thinking":{"budget_tokens":"1"}`, 0},
		{models.AnthropicMessages, `"thinking":{"budget_tokens":-5}`, 0},
		{models.AnthropicCount, `"thinking":{"budget_tokens":31999}`, 0},
		{models.OpenAIChat, `"thinking":{"budget_tokens":31999}`, 0},
	} {
		if r := mustParse(t, row.f, `{"model":"m","messages":[],`+row.more+`}`); r.Least != row.want {
			t.Errorf("%s %s: %d, want %d", row.f, row.more, r.Least, row.want)
		}
	}
}
