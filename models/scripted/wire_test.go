package scripted

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
)

// A stream as its bytes, for readers that are stricter than the one of these tests.
func TestBytesOfAStream(t *testing.T) {
	t.Parallel()
	p := provider(t, "turns: [{text: hi, usage: {in: 1, out: 2}}]")
	response := post(t, p, "/v1/messages", `{"model":"m","max_tokens":9,"stream":true,"messages":[{"role":"user","content":"x"}]}`)
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	usage := func(out string) string {
		return `{"cache_creation":{"ephemeral_1h_input_tokens":0,"ephemeral_5m_input_tokens":0},"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"input_tokens":1,"output_tokens":` + out +
			`,"output_tokens_details":{"thinking_tokens":0},"service_tier":"standard"}`
	}
	want := `event: message_start
data: {"message":{"content":[],"id":"msg_scripted_1","model":"m","role":"assistant","stop_reason":null,"stop_sequence":null,"type":"message","usage":` + usage("1") + `},"type":"message_start"}

event: ping
data: {"type":"ping"}

event: content_block_start
data: {"content_block":{"text":"","type":"text"},"index":0,"type":"content_block_start"}

event: content_block_delta
data: {"delta":{"text":"hi","type":"text_delta"},"index":0,"type":"content_block_delta"}

event: content_block_stop
data: {"index":0,"type":"content_block_stop"}

event: message_delta
data: {"delta":{"stop_reason":"end_turn","stop_sequence":null},"type":"message_delta","usage":` + usage("2") + `}

event: message_stop
data: {"type":"message_stop"}

`
	if string(text) != want {
		t.Errorf("%s", text)
	}
}

// A text that looks like an event stays a text.
func TestATextMakesNoEvents(t *testing.T) {
	t.Parallel()
	const text = "a\n\nevent: message_stop\ndata: [DONE]\r\n\r\n"
	p := provider(t, "turns: [{echo: true, chunk: 1000}]")
	body, err := json.Marshal(map[string]any{"model": "m", "stream": true, "max_tokens": 100, "messages": []any{map[string]any{"role": "user", "content": text}}})
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]int{"/v1/chat/completions": 4, "/v1/messages": 7} {
		events := stream(t, p, path, string(body))
		if len(events) != want {
			t.Errorf("%s: %d events", path, len(events))
		}
	}
}

// What is reported is a lie in each format, with a stream and without.
func TestLiesInEachFormat(t *testing.T) {
	t.Parallel()
	p := provider(t, "turns: [{text: hello, usage: {in: 5, out: 5}, lie: {in: 1000, out: 2000}}]")
	for path, row := range map[string]struct{ body, whole, streamed string }{
		"/v1/chat/completions": {`"stream_options":{"include_usage":true},"messages":[]`, "usage.completion_tokens", "usage.completion_tokens"},
		"/v1/responses":        {`"input":"x"`, "usage.output_tokens", "response.usage.output_tokens"},
		"/v1/messages":         {`"messages":[]`, "usage.output_tokens", "usage.output_tokens"},
	} {
		if d := whole(t, p, path, `{"model":"m",`+row.body+`}`, 200); d.at(row.whole) != "2000" {
			t.Errorf("%s: %v", path, d)
		}
		last := ""
		for _, e := range stream(t, p, path, `{"model":"m","stream":true,`+row.body+`}`) {
			if line := e.picked(t, row.streamed); strings.HasSuffix(line, "2000") {
				last = line
			}
		}
		if last == "" {
			t.Errorf("%s: the stream does not report it", path)
		}
	}
}

// Many clients at the same time get what one gets.
func TestManyClients(t *testing.T) {
	t.Parallel()
	p := provider(t, "turns: [{match: one, text: first}, {match: two, text: second, delay: 1ms}, {echo: true}]")
	want := map[string]string{"one": `"first"`, "two": `"second"`, "three": `"three"`}
	var all sync.WaitGroup
	for range 8 {
		for question, answer := range want {
			all.Go(func() {
				request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, p.URL+"/v1/chat/completions", strings.NewReader(ask(question)))
				if err != nil {
					t.Error(err)
					return
				}
				response, err := p.Client().Do(request)
				if err != nil {
					t.Error(err)
					return
				}
				defer response.Body.Close()
				var d decoded
				if err := json.NewDecoder(response.Body).Decode(&d); err != nil || d.at("choices.0.message.content") != answer {
					t.Errorf("%s: %v, %v", question, d, err)
				}
			})
		}
	}
	all.Wait()
}

// Other requests than the four get an error in JSON, and no page of HTML.
func TestOtherRequests(t *testing.T) {
	t.Parallel()
	p := provider(t, "turns: [{echo: true}]")
	for _, row := range []struct{ method, path string }{{"GET", "/v1/chat/completions"}, {"POST", "/"}, {"GET", "/v1/models"}, {"POST", "/v1/messages/batches"}, {"POST", "/V1/messages"}} {
		request, err := http.NewRequestWithContext(t.Context(), row.method, p.URL+row.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := p.Client().Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		var d decoded
		if err := json.NewDecoder(response.Body).Decode(&d); err != nil || response.StatusCode != http.StatusNotFound || !strings.Contains(d.at("error.message"), row.path) {
			t.Errorf("%s %s: %s, %v, %v", row.method, row.path, response.Status, d, err)
		}
	}
	// A query is no other request: clients add ?beta=true.
	if d := whole(t, p, "/v1/messages?beta=true", ask("x"), 200); d.at("content.0.text") != `"x"` {
		t.Errorf("%v", d)
	}
}
