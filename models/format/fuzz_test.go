package format

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"clove.run/clove/models"
)

var formats = []models.Format{models.OpenAIChat, models.OpenAIResponses, models.AnthropicMessages, models.AnthropicCount}

func seed(f *testing.F) {
	for i, row := range bodies {
		f.Add(byte(i), []byte(row.body))
		f.Add(byte(slices.Index(formats, row.format)), []byte(row.body))
	}
	for _, field := range Fields() {
		f.Add(byte(slices.Index(formats, field.Format)), []byte(inBody(field, `"https://example.com"`)))
	}
	f.Add(byte(0), []byte(`{"model":"m","x":{"a":[{}],"A":"\ud83d\ude00"},"stream":true,"stream_options":{"include_usage":false}}`))
}

func FuzzParse(f *testing.F) {
	seed(f)
	f.Fuzz(func(t *testing.T, which byte, body []byte) {
		r, err := Parse(formats[int(which)%len(formats)], body)
		if err != nil {
			var refusal *Refusal
			if !errors.As(err, &refusal) || refusal.Message == "" || len(refusal.Message) > 1000 {
				t.Fatalf("%#v", err)
			}
			return
		}
		var loose map[string]any
		var named struct{ Model string }
		if json.Unmarshal(body, &loose) != nil || json.Unmarshal(body, &named) != nil {
			t.Fatalf("Go's decoder refuses %q", body)
		}
		if named.Model != r.Model || loose["model"] != r.Model {
			t.Fatalf("%q: model %q, Go's decoder reads %q", body, r.Model, named.Model)
		}
		if r.In < 0 || r.Out < 0 || r.Out > MaxOut || r.N < 1 || r.N > MaxAnswers || r.In > int64(len(body))+ImageTokens*int64(len(r.document.nodes)) {
			t.Fatalf("%q: %+v", body, r)
		}
	})
}

func FuzzBody(f *testing.F) {
	seed(f)
	f.Fuzz(func(t *testing.T, which byte, body []byte) {
		format := formats[int(which)%len(formats)]
		r, err := Parse(format, body)
		if err != nil {
			return
		}
		sent, err := r.Body("the-provider", 77)
		if err != nil {
			t.Fatal(err)
		}
		sameMeaning(t, format, body, sent)
		again, err := Parse(format, sent)
		if err != nil {
			t.Fatalf("%q became %q: %v", body, sent, err)
		}
		if !slices.Equal(again.Needs, r.Needs) || again.N != r.N || again.Stream != r.Stream || again.Least != r.Least || again.Out != min(r.Out, 77) && (r.Out != 0 || again.Out != 77) {
			t.Fatalf("%+v became %+v", r, again)
		}
		if format == models.OpenAIChat && again.Usage != again.Stream {
			t.Fatalf("%q does not ask for the usage", sent)
		}
	})
}

func FuzzStreamFilter(f *testing.F) {
	f.Add([]byte(hello+"\n\n"+used+"\n\n"+ended+"\n\n"), byte(3))
	f.Add([]byte(hello+"\r\n\r\n"+used+"\r\n\r\n"), byte(1))
	f.Add([]byte(": x\r\r"+used+"\r\r\n\n"), byte(2))
	f.Fuzz(func(t *testing.T, stream []byte, piece byte) {
		r := &Request{Format: models.OpenAIChat, Stream: true}
		s := string(stream)
		whole := filtered(r, s, len(s)+1)
		if pieces := filtered(r, s, int(piece)+1); pieces != whole {
			t.Fatalf("%q: whole %q, in pieces of %d %q", s, whole, piece+1, pieces)
		}
		if !strings.Contains(s, `"usage"`) && whole != s {
			t.Fatalf("%q became %q", s, whole)
		}
		if filtered(r, whole, 5) != whole && !strings.Contains(s, "\r") {
			t.Fatalf("%q: not all was removed from %q", whole, s)
		}
	})
}
