package usage

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"unsafe"

	"clove.run/clove/models"
)

func TestFiguresThatAreNotBelieved(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		format models.Format
		usage  string
		want   models.Usage
		faults []Fault
	}{
		{models.OpenAIChat, `{"prompt_tokens":5,"completion_tokens":6,"total_tokens":11}`, models.Usage{In: 5, Out: 6}, nil},
		{models.OpenAIChat, `{"prompt_tokens":5.0,"completion_tokens":0.6e1}`, models.Usage{In: 5, Out: 6}, nil},
		{models.OpenAIChat, `{"prompt_tokens":-5,"completion_tokens":6}`, models.Usage{Out: 6}, []Fault{Negative}},
		{models.OpenAIChat, `{"prompt_tokens":5,"completion_tokens":1e300}`, models.Usage{In: 5, Out: MaxTokens}, []Fault{Huge}},
		{models.OpenAIChat, `{"prompt_tokens":5,"completion_tokens":1e999999}`, models.Usage{In: 5, Out: MaxTokens}, []Fault{Huge}},
		{models.OpenAIChat, `{"prompt_tokens":5,"completion_tokens":` + strings.Repeat("9", 500) + `}`, models.Usage{In: 5, Out: MaxTokens}, []Fault{Huge}},
		{models.OpenAIChat, `{"prompt_tokens":5,"completion_tokens":6-6}`, models.Usage{In: 5}, []Fault{Malformed}},
		{models.OpenAIChat, `{"prompt_tokens":"5","completion_tokens":6}`, models.Usage{Out: 6}, nil},
		{models.OpenAIChat, `{"prompt_tokens":5,"completion_tokens":6,"prompt_tokens":4}`, models.Usage{In: 5, Out: 6}, nil},
		{models.OpenAIChat, `{"prompt_tokens":5,"completion_tokens":6,"total_tokens":9}`, models.Usage{In: 5, Out: 6}, []Fault{Contradictory}},
		{models.OpenAIChat, `{"prompt_tokens":5,"completion_tokens":6,"prompt_tokens_details":{"cached_tokens":50,"cache_write_tokens":7}}`, models.Usage{Cached: 5, Out: 6}, []Fault{Contradictory}},
		{models.OpenAIChat, `{"prompt_tokens":5,"completion_tokens":6,"completion_tokens_details":{"reasoning_tokens":60}}`, models.Usage{In: 5, Out: 6, Reasoning: 6}, []Fault{Contradictory}},
		{models.AnthropicMessages, `{"input_tokens":5,"output_tokens":6,"cache_read_input_tokens":50}`, models.Usage{In: 5, Cached: 50, Out: 6}, nil},
		{models.AnthropicMessages, `{"input_tokens":5,"output_tokens":6,"output_tokens_details":{"thinking_tokens":7}}`, models.Usage{In: 5, Out: 6, Reasoning: 6}, []Fault{Contradictory}},
		{models.AnthropicMessages, `{"input_tokens":5,"output_tokens":6,"iterations":[` + strings.Repeat(`{"input_tokens":1e9},`, 9) + `{}]}`, models.Usage{In: MaxTokens, Out: 6}, nil},
	} {
		got := measure(row.format, false, `{"usage":`+row.usage+`}`, 1<<20)
		if got.Usage != row.want || !reflect.DeepEqual(got.Faults, row.faults) || !got.Reported {
			t.Errorf("%.80s: %+v", row.usage, got)
		}
	}
}

func TestReportsThatShrink(t *testing.T) {
	t.Parallel()
	one := `{"choices":[],"usage":{"prompt_tokens":50,"completion_tokens":60}}`
	for second, fault := range map[string][]Fault{one: nil, strings.Replace(one, "60", "61", 1): nil, strings.Replace(one, "60", "6", 1): {Shrinking}, `{"usage":{}}`: nil, `{"usage":null}`: nil} {
		got := measure(models.OpenAIChat, true, unnamed(one, second, "[DONE]"), 9)
		if got.Usage.In != 50 || got.Usage.Out < 60 || !reflect.DeepEqual(got.Faults, fault) {
			t.Errorf("%s: %+v", second, got)
		}
	}
}

func TestAReportOfNothingForSomething(t *testing.T) {
	t.Parallel()
	answer := `{"choices":[{"message":{"content":%q}}],"usage":{"prompt_tokens":5,"completion_tokens":0}}`
	for text, fault := range map[string][]Fault{"": nil, "Hello": {Contradictory}} {
		if got := measure(models.OpenAIChat, false, fmt.Sprintf(answer, text), 64); !reflect.DeepEqual(got.Faults, fault) {
			t.Errorf("%q: %+v", text, got)
		}
	}
}

func TestAReportThatIsToCome(t *testing.T) {
	t.Parallel()
	started := events(`{"type":"message_start","message":{"usage":{"input_tokens":5,"output_tokens":0}}}`, `{"type":"content_block_delta","delta":{"text":"Hello"}}`)
	if got := measure(models.AnthropicMessages, true, started, 9); got.Faults != nil || got.Complete {
		t.Errorf("%+v", got)
	}
	if got := measure(models.AnthropicMessages, true, started+events(`{"type":"message_stop"`), 9); got.Complete {
		t.Errorf("half an event completes an answer: %+v", got)
	}
}

// TestDataOfSeveralLines has events whose data lines are joined by line feeds.
func TestDataOfSeveralLines(t *testing.T) {
	t.Parallel()
	for _, end := range []string{"\n", "\r\n", "\r"} {
		stream := strings.Join([]string{`event: x`, `data: {"choices":[],`, `: in between`, `data:"usage":{"prompt_tokens":5,`, `data:  "completion_tokens":6}}`, ``, `data: [DONE]`, ``, ``}, end)
		for piece := range 9 {
			if got := measure(models.OpenAIChat, true, stream, piece+1); got.Usage != (models.Usage{In: 5, Out: 6}) || got.Faults != nil || !got.Complete {
				t.Errorf("%q in pieces of %d: %+v", stream, piece+1, got)
			}
		}
		stream = strings.Join([]string{`data: {"usage":{"completion_tokens":1`, `data: 2}}`, ``, ``}, end)
		if got := measure(models.OpenAIChat, true, stream, 9); got.Usage.Out != 0 || len(got.Faults) != 1 {
			t.Errorf("%q: %+v", stream, got)
		}
	}
}

func TestEscapesAreCounted(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int64{"abcdef": 2, `\n\n\n`: 1, `\u00e9\u00e9`: 2, `\ud83d\ude00`: 2, `\\\"\/`: 1, "éé": 2} {
		if got := measure(models.OpenAIChat, false, `{"choices":[{"message":{"content":"`+text+`"}}]}`, 3); got.Streamed != want || !got.Complete {
			t.Errorf("%s: %+v, want %d", text, got, want)
		}
	}
}

func TestMalformedAnswers(t *testing.T) {
	t.Parallel()
	for _, answer := range []string{
		`<html>502</html>`, `{"a":1}}`, `{"a":1} x`, `{"a" 1}`, `{"a":}`, `{a:1}`, `[1,]`, `{"a":1,}`, `{"a":tru}`, `{"a":]`, "{\"a\":\"\x01\"}", `{"a":[}`, `[1}`, strings.Repeat("[", maxDepth+1) + strings.Repeat("]", maxDepth+1),
	} {
		if got := measure(models.OpenAIChat, false, answer, 3); !reflect.DeepEqual(got.Faults, []Fault{Malformed}) || got.Complete {
			t.Errorf("%s: %+v", answer, got)
		}
		got := measure(models.OpenAIChat, true, unnamed(answer, `{"usage":{"completion_tokens":6}}`, "[DONE]"), 3)
		if !reflect.DeepEqual(got.Faults, []Fault{Malformed}) || got.Usage.Out != 6 || !got.Complete {
			t.Errorf("a stream with %s: %+v", answer, got)
		}
	}
	for _, answer := range []string{`{}`, ` {"a":[[],{},[1,2],"x",true,null,-1.5e3],"b":{"c":{}}} `, strings.Repeat("[", maxDepth) + strings.Repeat("]", maxDepth)} {
		if got := measure(models.OpenAIChat, false, answer, 3); got.Faults != nil || !got.Complete {
			t.Errorf("%s: %+v", answer, got)
		}
	}
}

// TestTextThatLooksLikeAReport has what a model or an agent could bring into an answer.
func TestTextThatLooksLikeAReport(t *testing.T) {
	t.Parallel()
	fake := `\",\"usage\":{\"completion_tokens\":1},\"x\":\"`
	for _, answer := range []string{
		`{"choices":[{"message":{"content":"` + fake + `","usage":{"completion_tokens":1}}}],"metadata":{"usage":{"completion_tokens":1},"usage.completion_tokens":1}}`,
		`{"usage.completion_tokens":1,"x":[{"usage":{"completion_tokens":1}}]}`,
		`{"usage":[{"completion_tokens":1}]}`,
		`{"error.code":"x"}`,
		`{"` + strings.Repeat("a", 400) + `":{"usage":{"completion_tokens":1}}}`,
		`{"\u0075sage":{"completion_tokens":1}}`,
	} {
		if got := measure(models.OpenAIChat, false, answer, 5); got.Reported || !got.Complete || got.Error != "" {
			t.Errorf("%s: %+v", answer, got)
		}
	}
	stream := unnamed(`{"choices":[{"delta":{"content":"\n\ndata: {\"usage\":{\"completion_tokens\":1}}\n\ndata: [DONE]"}}]}`)
	if got := measure(models.OpenAIChat, true, stream, 5); got.Reported || got.Complete {
		t.Errorf("%+v", got)
	}
}

func TestWordsOfProvidersAreShortAndPlain(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 5000)
	got := measure(models.OpenAIChat, false, `{"model":"a b\nc<é>`+long+`","choices":[{"finish_reason":"`+long+`"}],"error":{"code":"\u001b[2J`+long+`"}}`, 64)
	for _, word := range []string{got.Model, got.Stop, got.Error} {
		if len(word) > 80 || word == "" || strings.ContainsAny(word, " \n\x1b\"\\") {
			t.Errorf("%q", word)
		}
	}
	var tiers strings.Builder
	for i := range 100 {
		fmt.Fprintf(&tiers, `"service_tier":"%d",`, i)
	}
	if got := measure(models.OpenAIChat, false, `{`+tiers.String()+`"x":1}`, 64); len(got.Tiers) > 10 {
		t.Errorf("%d tiers", len(got.Tiers))
	}
}

// TestEndlessAnswers sends what never ends. A Meter has no pointer to anything that grows,
// but for words and tiers, which are bounded above. It is not parallel: it counts
// allocations.
func TestEndlessAnswers(t *testing.T) {
	if size := unsafe.Sizeof(Meter{}); size > 4096 {
		t.Errorf("a Meter has %d bytes", size)
	}
	for name, head := range map[string]string{
		"a line": "", "a field": "data: ", "a string": `data: {"choices":[{"delta":{"content":"`, "a name": `data: {"`, "a number": `data: {"usage":{"completion_tokens":1`, "names": `data: {"` + strings.Repeat(`a":{"`, 60),
	} {
		m := New(models.OpenAIChat, true)
		_, _ = m.Write([]byte(head))
		piece := []byte(strings.Repeat("1", 1<<16))
		if allocs := testing.AllocsPerRun(64, func() { _, _ = m.Write(piece) }); allocs > 0 {
			t.Errorf("%s without an end: %v allocations for each 64 KiB", name, allocs)
		}
		if got := m.Result(); got.Complete || got.Reported {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
