package usage

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"clove.run/clove/models"
)

// measure sends an answer in pieces.
func measure(f models.Format, stream bool, answer string, piece int) Result {
	m := New(f, stream)
	for len(answer) > 0 {
		n := min(piece, len(answer))
		_, _ = m.Write([]byte(answer[:n]))
		answer = answer[n:]
	}
	return m.Result()
}

// events is a stream whose events have names, as those of OpenAI's responses and of
// Anthropic do.
func events(data ...string) string {
	var b strings.Builder
	for _, d := range data {
		kind, _, _ := strings.Cut(strings.TrimPrefix(d, `{"type":"`), `"`)
		fmt.Fprintf(&b, "event: %s\ndata: %s\n\n", kind, d)
	}
	return b.String()
}

func unnamed(data ...string) string {
	return "data: " + strings.Join(data, "\n\ndata: ") + "\n\n"
}

var answers = []struct {
	name   string
	format models.Format
	stream bool
	answer string
	want   Result
}{
	{"chat", models.OpenAIChat, false, `{"id":"c","object":"chat.completion","created":1,"model":"gpt-5-mini-2025-08-07","choices":[{"index":0,"message":{"role":"assistant","content":"Hello there","refusal":null,"tool_calls":[{"id":"x","type":"function","function":{"name":"ls","arguments":"{\"a\":1}"}}]},"logprobs":null,"finish_reason":"tool_calls"}],
		"usage":{"prompt_tokens":120,"completion_tokens":40,"total_tokens":160,"prompt_tokens_details":{"cached_tokens":64,"audio_tokens":0,"cache_write_tokens":16},"completion_tokens_details":{"reasoning_tokens":32,"audio_tokens":0}},"service_tier":"priority"}`,
		Result{Usage: models.Usage{In: 40, Cached: 64, CacheWrite: 16, Out: 40, Reasoning: 32}, Model: "gpt-5-mini-2025-08-07", Tiers: []string{"service_tier=priority"}, Reported: true, Complete: true, Streamed: 7, Stop: "tool_calls"}},
	{"chat stream", models.OpenAIChat, true, unnamed(`{"id":"c","model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}],"usage":null}`,
		`{"id":"c","model":"m","choices":[{"index":0,"delta":{"content":"Hello"}}],"usage":null}`, `{"id":"c","model":"m","choices":[{"index":0,"delta":{"reasoning_content":"Hm."}}]}`,
		`{"id":"c","model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":null}`, `{"id":"c","model":"m","choices":[],"usage":{"prompt_tokens":9,"completion_tokens":5,"total_tokens":14}}`, `[DONE]`),
		Result{Usage: models.Usage{In: 9, Out: 5}, Model: "m", Reported: true, Complete: true, Streamed: 3, Stop: "stop"}},
	{"chat stream, reports in each chunk", models.OpenAIChat, true, ": ping\r\n\r\n" + strings.ReplaceAll(unnamed(`{"choices":[{"delta":{"content":"a"}}],"usage":{"prompt_tokens":9,"completion_tokens":1,"total_tokens":10}}`,
		`{"choices":[{"delta":{"content":"b"},"finish_reason":"length"}],"usage":{"prompt_tokens":9,"completion_tokens":2,"total_tokens":11}}`, `[DONE]`), "\n", "\r\n"),
		Result{Usage: models.Usage{In: 9, Out: 2}, Reported: true, Complete: true, Streamed: 1, Stop: "length"}},
	{"chat stream without a report", models.OpenAIChat, true, unnamed(`{"choices":[{"delta":{"content":"Hello there"}}]}`, `{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"name":"ls","arguments":"{}"}}]}}]}`, `[DONE] `),
		Result{Complete: true, Streamed: 5}},
	{"chat, reasoning in the total only", models.OpenAIChat, false, `{"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":5,"total_tokens":40,"completion_tokens_details":{"reasoning_tokens":25}}}`,
		Result{Usage: models.Usage{In: 10, Out: 30, Reasoning: 25}, Reported: true, Complete: true}},
	{"responses", models.OpenAIResponses, false, `{"id":"r","object":"response","status":"completed","error":null,"incomplete_details":null,"model":"gpt-5","output":[{"type":"reasoning","summary":[{"type":"summary_text","text":"abc"}]},{"type":"message","content":[{"type":"output_text","text":"Hello!","annotations":[]}]},{"type":"function_call","arguments":"{\"a\":1}"}],
		"metadata":{"usage":"x"},"usage":{"input_tokens":75,"input_tokens_details":{"cached_tokens":25},"output_tokens":1186,"output_tokens_details":{"reasoning_tokens":1024},"total_tokens":1261}}`,
		Result{Usage: models.Usage{In: 50, Cached: 25, Out: 1186, Reasoning: 1024}, Model: "gpt-5", Reported: true, Complete: true, Streamed: 6, Stop: "completed"}},
	{"responses stream", models.OpenAIResponses, true, events(`{"type":"response.created","response":{"id":"r","status":"in_progress","model":"gpt-5","usage":null,"error":null}}`, `{"type":"response.output_text.delta","delta":"Hello!"}`,
		`{"type":"response.output_text.done","text":"Hello!"}`, `{"type":"response.completed","response":{"id":"r","status":"completed","model":"gpt-5","output":[{"content":[{"text":"Hello!"}]}],"service_tier":"default","usage":{"input_tokens":7,"input_tokens_details":{"cached_tokens":0},"output_tokens":3,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":10}}}`),
		Result{Usage: models.Usage{In: 7, Out: 3}, Model: "gpt-5", Tiers: []string{"service_tier=default"}, Reported: true, Complete: true, Streamed: 2, Stop: "completed"}},
	{"responses stream of another tier than it asked for", models.OpenAIResponses, true, events(`{"type":"response.created","response":{"status":"in_progress","service_tier":"priority"}}`, `{"type":"response.completed","response":{"status":"completed","service_tier":"default","usage":{"input_tokens":7,"output_tokens":3,"total_tokens":10}}}`),
		Result{Usage: models.Usage{In: 7, Out: 3}, Tiers: []string{"service_tier=default"}, Reported: true, Complete: true, Stop: "completed"}},
	{"responses stream, cut by the maximum", models.OpenAIResponses, true, events(`{"type":"response.incomplete","response":{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},"usage":{"input_tokens":7,"output_tokens":3,"total_tokens":10}}}`),
		Result{Usage: models.Usage{In: 7, Out: 3}, Reported: true, Complete: true, Stop: "max_output_tokens"}},
	{"responses stream that fails", models.OpenAIResponses, true, events(`{"type":"response.output_text.delta","delta":"Hel"}`, `{"type":"response.failed","response":{"status":"failed","error":{"code":"server_error","message":"sorry"},"usage":null}}`),
		Result{Streamed: 1, Stop: "failed", Error: "server_error", Faults: []Fault{Failed}}},
	{"responses stream with an error", models.OpenAIResponses, true, events(`{"type":"error","sequence_number":1,"code":"rate_limit_exceeded","message":"later","param":null}`),
		Result{Error: "rate_limit_exceeded", Faults: []Fault{Failed}}},
	{"messages", models.AnthropicMessages, false, `{"id":"msg_1","type":"message","role":"assistant","model":"claude-sonnet-4-5","content":[{"type":"thinking","thinking":"Hm.","signature":"EqQB"},{"type":"text","text":"Hello!"},{"type":"tool_use","id":"t","name":"Bash","input":{"command":"ls","deep":{"a":["xyz"]}}}],"stop_reason":"tool_use","stop_sequence":null,
		"usage":{"input_tokens":10,"cache_creation_input_tokens":300,"cache_read_input_tokens":2000,"cache_creation":{"ephemeral_5m_input_tokens":100,"ephemeral_1h_input_tokens":200},"output_tokens":50,"output_tokens_details":{"thinking_tokens":20},"service_tier":"standard","server_tool_use":{"web_search_requests":2,"web_fetch_requests":0},"speed":"fast"}}`,
		Result{Usage: models.Usage{In: 10, Cached: 2000, CacheWrite: 300, CacheWriteLong: 200, Out: 50, Reasoning: 20}, Searches: 2, Model: "claude-sonnet-4-5", Tiers: []string{"service_tier=standard", "speed=fast"}, Reported: true, Complete: true, Streamed: 5, Stop: "tool_use"}},
	{"messages stream", models.AnthropicMessages, true, events(`{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","content":[],"model":"claude-sonnet-4-5","stop_reason":null,"usage":{"input_tokens":25,"cache_creation_input_tokens":0,"cache_read_input_tokens":7,"output_tokens":1}}}`,
		`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`, `{"type":"ping"}`, `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hello"}}`, `{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"a\":"}}`,
		`{"type":"content_block_stop","index":0}`, `{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":15}}`, `{"type":"message_stop"}`),
		Result{Usage: models.Usage{In: 25, Cached: 7, Out: 15}, Model: "claude-sonnet-4-5", Reported: true, Complete: true, Streamed: 4, Stop: "end_turn"}},
	{"messages stream, shortened", models.AnthropicMessages, true, events(`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"input_tokens":23,"output_tokens":10,"iterations":[{"type":"compaction","input_tokens":180,"output_tokens":35,"cache_read_input_tokens":4},{"type":"message","input_tokens":23,"output_tokens":10}]}}`, `{"type":"message_stop"}`),
		Result{Usage: models.Usage{In: 203, Cached: 4, Out: 45}, Reported: true, Complete: true, Stop: "end_turn"}},
	{"messages stream with an error", models.AnthropicMessages, true, events(`{"type":"message_start","message":{"model":"c","usage":{"input_tokens":25,"output_tokens":1}}}`, `{"type":"content_block_delta","delta":{"type":"text_delta","text":"`+strings.Repeat("abc", 9)+`"}}`, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`),
		Result{Usage: models.Usage{In: 25, Out: 1}, Model: "c", Reported: true, Streamed: 9, Error: "overloaded_error", Faults: []Fault{Failed}}},
	{"an error", models.AnthropicMessages, false, `{"type":"error","error":{"type":"rate_limit_error","message":"later"},"request_id":"req_1"}`,
		Result{Error: "rate_limit_error", Faults: []Fault{Failed}}},
	{"an error of OpenAI's", models.OpenAIChat, false, `{"error":{"message":"no","type":"invalid_request_error","param":null,"code":"context_length_exceeded"}}`,
		Result{Error: "context_length_exceeded", Faults: []Fault{Failed}}},
	{"count", models.AnthropicCount, false, `{"input_tokens":2095}`, Result{Reported: true, Complete: true}},
	{"an empty answer", models.OpenAIChat, false, ``, Result{}},
	{"an empty stream", models.OpenAIChat, true, ``, Result{}},
}

func TestAnswers(t *testing.T) {
	t.Parallel()
	for _, row := range answers {
		for _, piece := range []int{1, 2, 3, 7, 64, len(row.answer) + 1} {
			if got := measure(row.format, row.stream, row.answer, piece); !reflect.DeepEqual(got, row.want) {
				t.Errorf("%s in pieces of %d:\n got %+v\nwant %+v", row.name, piece, got, row.want)
			}
		}
	}
}

// TestAnswersThatBreakOff cuts each stream at each byte: what was reported and streamed
// until then stays, and only the end completes it.
func TestAnswersThatBreakOff(t *testing.T) {
	t.Parallel()
	for _, row := range answers {
		var last Result
		for cut := range len(row.answer) {
			got := measure(row.format, row.stream, row.answer[:cut], cut+1)
			if got.Streamed < last.Streamed || got.Usage.Out < last.Usage.Out || got.Usage.Out > row.want.Usage.Out || got.Streamed > row.want.Streamed {
				t.Errorf("%s, %d bytes: %+v after %+v", row.name, cut, got, last)
			}
			if got.Complete && row.stream && cut < len(strings.TrimRight(row.answer, "\r\n")) || slices.Contains(got.Faults, Malformed) {
				t.Errorf("%s, %d bytes: %+v", row.name, cut, got)
			}
			last = got
		}
	}
}

func TestCharge(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name string
		r    Result
		want models.Usage
	}{
		{"reported", Result{Usage: models.Usage{In: 5, Out: 6}, Reported: true, Complete: true, Streamed: 70}, models.Usage{In: 5, Out: 6}},
		{"broke off behind a first report", Result{Usage: models.Usage{In: 5, Out: 1}, Reported: true, Streamed: 70}, models.Usage{In: 5, Out: 70}},
		{"broke off without one", Result{Streamed: 70}, models.Usage{In: 99, Out: 70}},
		{"complete without one", Result{Streamed: 70, Complete: true}, models.Usage{In: 99, Out: 70}},
		{"nothing came", Result{}, models.Usage{In: 99}},
	} {
		if got := row.r.Charge(models.OpenAIChat, 99); got != row.want {
			t.Errorf("%s: %+v, want %+v", row.name, got, row.want)
		}
	}
	if got := (Result{}).Charge(models.AnthropicCount, 99); got != (models.Usage{}) {
		t.Errorf("counting costs %+v", got)
	}
}

// What is written up to a number of tokens is one token more at most, and no less than the
// whole where that is shorter.
func TestWriteUpTo(t *testing.T) {
	t.Parallel()
	for _, row := range answers {
		whole := measure(row.format, row.stream, row.answer, len(row.answer))
		for most := range whole.Streamed + 2 {
			m := New(row.format, row.stream)
			n := m.WriteUpTo([]byte(row.answer), most)
			if got := m.Streamed(); got > most+1 || (n < len(row.answer) || got > most) != (whole.Streamed > most) {
				t.Errorf("%s, %d: %d of %d bytes, %d of %d tokens", row.name, most, n, len(row.answer), got, whole.Streamed)
			}
		}
	}
}
