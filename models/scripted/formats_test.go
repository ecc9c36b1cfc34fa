package scripted

import (
	"encoding/json"
	"testing"
)

// both is a turn with text and two calls of tools.
const both = `
turns:
- turn: 1
  text: Let me see.
  chunk: 8
  tool_calls:
  - {name: forecast, arguments: {city: Paris, days: 2}}
  - {name: now}
  usage: {in: 10, cached: 5, cache_write: 2, out: 7, reasoning: 3}
- {match: rain, turn: 2, text: It rains.}
`

func TestChat(t *testing.T) {
	t.Parallel()
	p := provider(t, both)
	d := whole(t, p, "/v1/chat/completions", `{"model":"m","messages":[{"role":"system","content":"be brief"},{"role":"user","content":"weather?"}]}`, 200)
	for path, want := range map[string]string{
		"object": `"chat.completion"`, "model": `"m"`, "id": `"chatcmpl-scripted_1"`,
		"choices.0.finish_reason": `"tool_calls"`, "choices.0.message.content": `"Let me see."`, "choices.0.message.role": `"assistant"`,
		"choices.0.message.tool_calls.0":                   `{"function":{"arguments":"{\"city\":\"Paris\",\"days\":2}","name":"forecast"},"id":"call_1_1","type":"function"}`,
		"choices.0.message.tool_calls.1.function":          `{"arguments":"{}","name":"now"}`,
		"usage.prompt_tokens":                              "17",
		"usage.completion_tokens":                          "7",
		"usage.total_tokens":                               "24",
		"usage.prompt_tokens_details.cached_tokens":        "5",
		"usage.completion_tokens_details.reasoning_tokens": "3",
	} {
		if got := d.at(path); got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
	// The second answer follows from the conversation.
	d = whole(t, p, "/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":"weather?"},
		{"role":"assistant","content":null,"tool_calls":[{"id":"call_1_1","type":"function","function":{"name":"forecast","arguments":"{}"}}]},
		{"role":"tool","tool_call_id":"call_1_1","content":"sun"},{"role":"tool","tool_call_id":"call_1_2","content":[{"type":"text","text":"rain"}]}]}`, 200)
	if d.at("choices.0.message.content") != `"It rains."` || d.at("choices.0.finish_reason") != `"stop"` || d.at("usage.prompt_tokens") != "7" || d.at("usage.completion_tokens") != "3" {
		t.Errorf("%v", d)
	}
}

func TestChatStream(t *testing.T) {
	t.Parallel()
	p := provider(t, both)
	body := `{"model":"m","stream":true,%s"messages":[{"role":"user","content":"weather?"}]}`
	want := []string{
		`{"content":"","refusal":null,"role":"assistant"}`,
		`{"content":"Let me s"}`,
		`{"content":"ee."}`,
		`{"tool_calls":[{"function":{"arguments":"","name":"forecast"},"id":"call_1_1","index":0,"type":"function"}]}`,
		`{"tool_calls":[{"function":{"arguments":"{\"city\":"},"index":0}]}`,
		`{"tool_calls":[{"function":{"arguments":"\"Paris\","},"index":0}]}`,
		`{"tool_calls":[{"function":{"arguments":"\"days\":2"},"index":0}]}`,
		`{"tool_calls":[{"function":{"arguments":"}"},"index":0}]}`,
		`{"tool_calls":[{"function":{"arguments":"","name":"now"},"id":"call_1_2","index":1,"type":"function"}]}`,
		`{"tool_calls":[{"function":{"arguments":"{}"},"index":1}]}`,
		`{} "tool_calls"`,
		`[DONE]`,
	}
	paths := []string{"choices.0.delta", "choices.0.finish_reason", "usage.total_tokens"}
	compare(t, stream(t, p, "/v1/chat/completions", sprintf(body, "")), want, paths...)
	withUsage := append(append([]string{}, want[:len(want)-1]...), "24", "[DONE]")
	compare(t, stream(t, p, "/v1/chat/completions", sprintf(body, `"stream_options":{"include_usage":true},`)), withUsage, paths...)
}

func TestChatChoices(t *testing.T) {
	t.Parallel()
	p := provider(t, "turns: [{text: four}]")
	body := `{"model":"m","n":2,"stream":%s,"messages":[{"role":"user","content":"x"}]}`
	d := whole(t, p, "/v1/chat/completions", sprintf(body, "false"), 200)
	if d.at("choices.1.message.content") != `"four"` || d.at("choices.1.index") != "1" || d.at("usage.completion_tokens") != "2" {
		t.Errorf("%v", d)
	}
	compare(t, stream(t, p, "/v1/chat/completions", sprintf(body, "true")),
		[]string{`0 ""`, `0 "four"`, `0 "stop"`, `1 ""`, `1 "four"`, `1 "stop"`, `[DONE]`}, "choices.0.index", "choices.0.delta.content", "choices.0.finish_reason")
}

func TestResponses(t *testing.T) {
	t.Parallel()
	p := provider(t, both)
	d := whole(t, p, "/v1/responses", `{"model":"m","instructions":"be brief","input":"weather?"}`, 200)
	for path, want := range map[string]string{
		"object": `"response"`, "status": `"completed"`, "id": `"resp_scripted_1"`,
		"output.0.content.0": `{"annotations":[],"logprobs":[],"text":"Let me see.","type":"output_text"}`,
		"output.1":           `{"arguments":"{\"city\":\"Paris\",\"days\":2}","call_id":"call_1_1","id":"fc_scripted_1_1","name":"forecast","status":"completed","type":"function_call"}`,
		"usage":              `{"input_tokens":17,"input_tokens_details":{"cache_write_tokens":2,"cached_tokens":5},"output_tokens":7,"output_tokens_details":{"reasoning_tokens":3},"total_tokens":24}`,
	} {
		if got := d.at(path); got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
	// Reasoning, message and calls are one turn of the model's.
	d = whole(t, p, "/v1/responses", `{"model":"m","input":[{"role":"user","content":[{"type":"input_text","text":"weather?"}]},{"type":"reasoning","summary":[]},
		{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Let me see."}]},{"type":"function_call","call_id":"c","name":"forecast","arguments":"{}"},
		{"type":"function_call_output","call_id":"c","output":"rain"}]}`, 200)
	if d.at("output.0.content.0.text") != `"It rains."` || d.at("output.1") != "null" {
		t.Errorf("%v", d)
	}
}

func TestResponsesStream(t *testing.T) {
	t.Parallel()
	events := stream(t, provider(t, both), "/v1/responses", `{"model":"m","stream":true,"input":"weather?"}`)
	item := `"msg_scripted_1" 0 0`
	part := `{"annotations":[],"logprobs":[],"text":"Let me see.","type":"output_text"}`
	compare(t, events, []string{
		`response.created 0 "in_progress"`,
		`response.in_progress 1 "in_progress"`,
		`response.output_item.added 2 0 {"content":[],"id":"msg_scripted_1","role":"assistant","status":"in_progress","type":"message"}`,
		`response.content_part.added 3 ` + item + ` {"annotations":[],"logprobs":[],"text":"","type":"output_text"}`,
		`response.output_text.delta 4 ` + item + ` "Let me s"`,
		`response.output_text.delta 5 ` + item + ` "ee."`,
		`response.output_text.done 6 ` + item + ` "Let me see."`,
		`response.content_part.done 7 ` + item + ` ` + part,
		`response.output_item.done 8 0 {"content":[` + part + `],"id":"msg_scripted_1","role":"assistant","status":"completed","type":"message"}`,
		`response.output_item.added 9 1 {"arguments":"","call_id":"call_1_1","id":"fc_scripted_1_1","name":"forecast","status":"in_progress","type":"function_call"}`,
		`response.function_call_arguments.delta 10 "fc_scripted_1_1" 1 "{\"city\":"`,
		`response.function_call_arguments.delta 11 "fc_scripted_1_1" 1 "\"Paris\","`,
		`response.function_call_arguments.delta 12 "fc_scripted_1_1" 1 "\"days\":2"`,
		`response.function_call_arguments.delta 13 "fc_scripted_1_1" 1 "}"`,
		`response.function_call_arguments.done 14 "fc_scripted_1_1" 1 "{\"city\":\"Paris\",\"days\":2}"`,
		`response.output_item.done 15 1 {"arguments":"{\"city\":\"Paris\",\"days\":2}","call_id":"call_1_1","id":"fc_scripted_1_1","name":"forecast","status":"completed","type":"function_call"}`,
		`response.output_item.added 16 2 {"arguments":"","call_id":"call_1_2","id":"fc_scripted_1_2","name":"now","status":"in_progress","type":"function_call"}`,
		`response.function_call_arguments.delta 17 "fc_scripted_1_2" 2 "{}"`,
		`response.function_call_arguments.done 18 "fc_scripted_1_2" 2 "{}"`,
		`response.output_item.done 19 2 {"arguments":"{}","call_id":"call_1_2","id":"fc_scripted_1_2","name":"now","status":"completed","type":"function_call"}`,
		`response.completed 20 "completed" 24`,
	}, "sequence_number", "item_id", "output_index", "content_index", "item", "part", "delta", "text", "arguments", "response.status", "response.usage.total_tokens")
	for _, e := range events {
		var typed struct{ Type string }
		if err := json.Unmarshal([]byte(e.data), &typed); err != nil || typed.Type != e.name {
			t.Errorf("%s has the type %q, %v", e.name, typed.Type, err)
		}
	}
}

func TestMessages(t *testing.T) {
	t.Parallel()
	p := provider(t, both)
	d := whole(t, p, "/v1/messages", `{"model":"m","max_tokens":100,"system":[{"type":"text","text":"be brief"}],"messages":[{"role":"user","content":"weather?"}]}`, 200)
	for path, want := range map[string]string{
		"type": `"message"`, "role": `"assistant"`, "id": `"msg_scripted_1"`, "stop_reason": `"tool_use"`, "stop_sequence": "null",
		"content.0.text": `"Let me see."`,
		"content.1":      `{"id":"toolu_call_1_1","input":{"city":"Paris","days":2},"name":"forecast","type":"tool_use"}`,
		"content.2":      `{"id":"toolu_call_1_2","input":{},"name":"now","type":"tool_use"}`,

		"usage.input_tokens": "10", "usage.output_tokens": "7", "usage.cache_read_input_tokens": "5", "usage.cache_creation_input_tokens": "2",
	} {
		if got := d.at(path); got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
	conversation := `{"model":"m","max_tokens":100,"messages":[{"role":"user","content":"weather?"},
		{"role":"assistant","content":[{"type":"tool_use","id":"toolu_call_1_1","name":"forecast","input":{"city":"Paris"}}]},
		{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_call_1_1","content":[{"type":"text","text":"rain"}]}]}]}`
	if d = whole(t, p, "/v1/messages", conversation, 200); d.at("content.0.text") != `"It rains."` || d.at("stop_reason") != `"end_turn"` {
		t.Errorf("%v", d)
	}
	// weather? (8), forecast (8), {"city":"Paris"} (16), rain (4)
	if d = whole(t, p, "/v1/messages/count_tokens", conversation, 200); d.at("input_tokens") != "9" {
		t.Errorf("%v", d)
	}
}

func TestMessagesStream(t *testing.T) {
	t.Parallel()
	events := stream(t, provider(t, both), "/v1/messages", `{"model":"m","max_tokens":100,"stream":true,"messages":[{"role":"user","content":"weather?"}]}`)
	compare(t, events, []string{
		`message_start [] 10 1`,
		`ping`,
		`content_block_start 0 {"text":"","type":"text"}`,
		`content_block_delta 0 {"text":"Let me s","type":"text_delta"}`,
		`content_block_delta 0 {"text":"ee.","type":"text_delta"}`,
		`content_block_stop 0`,
		`content_block_start 1 {"id":"toolu_call_1_1","input":{},"name":"forecast","type":"tool_use"}`,
		`content_block_delta 1 {"partial_json":"{\"city\":","type":"input_json_delta"}`,
		`content_block_delta 1 {"partial_json":"\"Paris\",","type":"input_json_delta"}`,
		`content_block_delta 1 {"partial_json":"\"days\":2","type":"input_json_delta"}`,
		`content_block_delta 1 {"partial_json":"}","type":"input_json_delta"}`,
		`content_block_stop 1`,
		`content_block_start 2 {"id":"toolu_call_1_2","input":{},"name":"now","type":"tool_use"}`,
		`content_block_delta 2 {"partial_json":"{}","type":"input_json_delta"}`,
		`content_block_stop 2`,
		`message_delta {"stop_reason":"tool_use","stop_sequence":null} 10 7`,
		`message_stop`,
	}, "index", "content_block", "delta", "message.content", "message.usage.input_tokens", "message.usage.output_tokens", "usage.input_tokens", "usage.output_tokens")
}

// Calls without a text have no empty text beside them.
func TestCallsAlone(t *testing.T) {
	t.Parallel()
	p := provider(t, "turns: [{tool_calls: [{name: now, arguments: 'no json'}]}]")
	chat := `{"model":"m","messages":[{"role":"user","content":"x"}]}`
	if d := whole(t, p, "/v1/chat/completions", chat, 200); d.at("choices.0.message.content") != "null" || d.at("choices.0.message.tool_calls.0.function.arguments") != `"no json"` {
		t.Errorf("%v", d)
	}
	if d := whole(t, p, "/v1/responses", `{"model":"m","input":"x"}`, 200); d.at("output.0.type") != `"function_call"` {
		t.Errorf("%v", d)
	}
	if d := whole(t, p, "/v1/messages", chat, 200); d.at("content.0.type") != `"tool_use"` || d.at("content.0.input") != "{}" {
		t.Errorf("%v", d)
	}
	events := stream(t, p, "/v1/responses", `{"model":"m","stream":true,"input":"x"}`)
	compare(t, events[2:3], []string{`response.output_item.added 0`}, "output_index")
}
