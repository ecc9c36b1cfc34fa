package format

import (
	"strings"
	"testing"

	"clove.run/clove/models"
)

const (
	hello    = `data: {"id":"c1","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"Hello"}}],"usage":null}`
	lastWord = `data: {"id":"c1","choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":null}`
	used     = `data: {"id":"c1","choices":[],"usage":{"prompt_tokens":3,"completion_tokens":4,"total_tokens":7}}`
	filters  = `data: {"id":"","choices":[],"prompt_filter_results":[{"prompt_index":0}]}`
	ended    = `data: [DONE]`
)

// filtered sends a stream in pieces.
func filtered(r *Request, stream string, piece int) string {
	f := NewStreamFilter(r)
	var out strings.Builder
	for len(stream) > 0 {
		n := min(piece, len(stream))
		out.Write(f.Filter([]byte(stream[:n])))
		stream = stream[n:]
	}
	out.Write(f.Rest())
	return out.String()
}

func TestStreamFilter(t *testing.T) {
	t.Parallel()
	chat := &Request{Format: models.OpenAIChat, Stream: true}
	for _, end := range []string{"\n", "\r\n", "\r"} {
		join := func(events ...string) string { return strings.Join(events, end+end) + end + end }
		for _, row := range []struct{ stream, want string }{
			{join(hello, lastWord, used, ended), join(hello, lastWord, ended)},
			{join(used), ""},
			{join(used, used, hello), join(hello)},
			{join(filters, hello, ended), join(filters, hello, ended)},
			{join(": ping", hello, ": ping"+end+used, ended), join(": ping", hello, ended)},
			{join("event: x"+end+"id: 7"+end+used, hello), join(hello)},
			{join(strings.Replace(used, "data: ", "data:", 1)), ""},
			{join(strings.Replace(used, `"usage"`, end+`data: "usage"`, 1), hello), join(hello)},
			{join(`data: {"choices":[{"delta":{}}],"usage":{"prompt_tokens":1}}`), join(`data: {"choices":[{"delta":{}}],"usage":{"prompt_tokens":1}}`)},
			{join(`data: {"usage":{"prompt_tokens":1}}`), join(`data: {"usage":{"prompt_tokens":1}}`)},
			{join(`data: {"error":{"message":"\"usage\""}}`), join(`data: {"error":{"message":"\"usage\""}}`)},
			{end + end + join(hello), end + end + join(hello)},
			{join(hello) + hello, join(hello) + hello},
			{join(hello) + used, join(hello) + used},
			{"", ""},
		} {
			for piece := 1; piece <= len(row.stream)+1; piece++ {
				if got := filtered(chat, row.stream, piece); got != row.want {
					t.Errorf("in pieces of %d:\n%q\n got %q\nwant %q", piece, row.stream, got, row.want)
					break
				}
			}
		}
	}
}

func TestStreamFilterLetsOthersPass(t *testing.T) {
	t.Parallel()
	stream := hello + "\n\n" + used + "\n\n"
	for _, r := range []*Request{
		{Format: models.OpenAIChat, Stream: true, Usage: true}, {Format: models.OpenAIChat}, {Format: models.OpenAIResponses, Stream: true}, {Format: models.AnthropicMessages, Stream: true},
	} {
		if got := filtered(r, stream, 7); got != stream {
			t.Errorf("%+v: %q", r, got)
		}
	}
}

// TestStreamFilterPassesWholeEvents cuts a stream at each byte: what has passed ends with an
// event.
func TestStreamFilterPassesWholeEvents(t *testing.T) {
	t.Parallel()
	stream := "event: a\ndata: 1\n\nevent: b\r\ndata: 2\r\n\r\n" + hello + "\n\n"
	for _, format := range formats[:3] {
		for cut := range len(stream) {
			passed := string(NewStreamFilter(&Request{Format: format, Stream: true}).Filter([]byte(stream[:cut])))
			if !strings.HasPrefix(stream, passed) || passed != "" && !strings.HasSuffix(passed, "\n\n") && !strings.HasSuffix(passed, "\r\n\r") && !strings.HasSuffix(passed, "\r\n\r\n") {
				t.Errorf("%s, %d bytes: %q has passed", format, cut, passed)
			}
		}
	}
}

func TestStreamFilterKeepsNoLongEvent(t *testing.T) {
	t.Parallel()
	f := NewStreamFilter(&Request{Format: models.OpenAIChat, Stream: true})
	piece := []byte(strings.Repeat("x", 1<<16))
	passed := 0
	for range 64 {
		passed += len(f.Filter(piece))
		if len(f.event) > MaxEvent {
			t.Fatalf("keeps %d bytes", len(f.event))
		}
	}
	passed += len(f.Filter([]byte("\r\n\r\n" + used + "\n\n" + hello + "\n\n")))
	// The end of a long event that looks like the usage belongs to it.
	long := ":" + strings.Repeat("x", MaxEvent) + "\n" + used + "\n\n"
	if got := filtered(&Request{Format: models.OpenAIChat, Stream: true}, long, 1<<16); got != long {
		t.Errorf("%d of %d bytes passed", len(got), len(long))
	}
	if want := 64<<16 + len("\r\n\r\n"+hello+"\n\n"); passed != want {
		t.Errorf("%d bytes passed, want %d", passed, want)
	}
}
