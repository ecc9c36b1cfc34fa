package usage

import (
	"encoding/json"
	"reflect"
	"testing"

	"clove.run/clove/models"
)

var formats = []models.Format{models.OpenAIChat, models.OpenAIResponses, models.AnthropicMessages, models.AnthropicCount}

func FuzzMeter(f *testing.F) {
	for i, row := range answers {
		f.Add(byte(i), row.stream, byte(5), []byte(row.answer))
	}
	f.Add(byte(0), true, byte(1), []byte("data:{\rdata\rdata: \"a\":1}\r\n\r\n:x\n\ndata: [DONE]\n\n"))
	f.Fuzz(func(t *testing.T, which byte, stream bool, piece byte, answer []byte) {
		format := formats[int(which)%len(formats)]
		whole := measure(format, stream, string(answer), len(answer)+1)
		if pieces := measure(format, stream, string(answer), int(piece)+1); !reflect.DeepEqual(whole, pieces) {
			t.Fatalf("whole %+v, in pieces of %d %+v", whole, piece+1, pieces)
		}
		u := whole.Usage
		for _, n := range []int64{u.In, u.Cached, u.CacheWrite, u.Out, u.Reasoning, u.CacheWriteLong, whole.Searches} {
			if n < 0 || n > MaxTokens {
				t.Fatalf("%+v", whole)
			}
		}
		if u.Reasoning > u.Out || whole.Streamed > int64(len(answer)) || !whole.Reported && u != (models.Usage{}) && format != models.AnthropicCount {
			t.Fatalf("%+v", whole)
		}
		if !stream && json.Valid(answer) && whole.Complete != (whole.Error == "") && depth(answer) <= maxDepth && delimited(answer) {
			t.Fatalf("valid JSON %q: %+v", answer, whole)
		}
	})
}

// depth is the most that a document can be nested.
func depth(answer []byte) int {
	n := 0
	for _, b := range answer {
		if b == '{' || b == '[' {
			n++
		}
	}
	return n
}

// delimited reports whether a document ends by a byte of its own: a number alone could go on.
func delimited(answer []byte) bool {
	for _, b := range answer {
		if b == '{' || b == '[' || b == '"' {
			return true
		}
	}
	return false
}
