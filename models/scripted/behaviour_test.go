package scripted

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"clove.run/clove/models"
)

func sprintf(format string, arguments ...any) string { return fmt.Sprintf(format, arguments...) }

// ask is a chat request with one text.
func ask(text string) string {
	return sprintf(`{"model":"gpt-9","messages":[{"role":"user","content":%q}]}`, text)
}

func TestTheFirstTurnThatFitsAnswers(t *testing.T) {
	t.Parallel()
	p := provider(t, `
turns:
- {model: 'claude-*', text: of another model}
- {match: weather, regexp: '(?i)in (paris|rome)', text: of a city}
- {match: weather, text: of no city}
- {turn: 3, text: third}
- {turn: 1, text: first}
`)
	for question, want := range map[string]string{"weather in Paris": "of a city", "the weather": "of no city", "in Rome": "first"} {
		if d := whole(t, p, "/v1/chat/completions", ask(question), 200); d.at("choices.0.message.content") != sprintf("%q", want) {
			t.Errorf("%s: %v", question, d)
		}
	}
	third := `{"model":"m","messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"},{"role":"user","content":"c"},{"role":"assistant","content":"d"},{"role":"user","content":"e"}]}`
	for range 2 { // asked again, answered the same
		if d := whole(t, p, "/v1/chat/completions", third, 200); d.at("choices.0.message.content") != `"third"` {
			t.Errorf("%v", d)
		}
	}
	second := `{"model":"m","messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"},{"role":"user","content":"c"}]}`
	if d := whole(t, p, "/v1/chat/completions", second, 400); !strings.Contains(d.at("error.message"), "no turn of the script answers turn 2") {
		t.Errorf("%v", d)
	}
}

func TestEcho(t *testing.T) {
	t.Parallel()
	p := provider(t, "turns: [{echo: true}]")
	body := `{"model":"echo","messages":[{"role":"user","content":"first"},{"role":"assistant","content":"x"},{"role":"user","content":[{"type":"text","text":"é"},{"type":"image","source":{}},{"type":"text","text":"last"}]}]}`
	if d := whole(t, p, "/v1/messages", body, 200); d.at("content.0.text") != `"é\nlast"` {
		t.Errorf("%v", d)
	}
	if len(Echo().Turns) != 1 || !Echo().Turns[0].Echo {
		t.Error("Echo is another script")
	}
}

// A text is cut where the request allows no more tokens, as each format says it.
func TestMaximumOfTokens(t *testing.T) {
	t.Parallel()
	p := provider(t, "turns: [{text: 'ab€', repeat: 10}]")
	for _, row := range []struct{ path, body, text, cut, why, out string }{
		{"/v1/chat/completions", `"max_tokens":2,"messages":[]`, "choices.0.message.content", `"ab€ab"`, "choices.0.finish_reason", "usage.completion_tokens"},
		{"/v1/chat/completions", `"max_completion_tokens":2,"messages":[]`, "choices.0.message.content", `"ab€ab"`, "choices.0.finish_reason", "usage.completion_tokens"},
		{"/v1/responses", `"max_output_tokens":2,"input":"x"`, "output.0.content.0.text", `"ab€ab"`, "incomplete_details.reason", "usage.output_tokens"},
		{"/v1/messages", `"max_tokens":2,"messages":[]`, "content.0.text", `"ab€ab"`, "stop_reason", "usage.output_tokens"},
	} {
		d := whole(t, p, row.path, `{"model":"m",`+row.body+`}`, 200)
		if why := d.at(row.why); d.at(row.text) != row.cut || d.at(row.out) != "2" || why != `"length"` && why != `"max_output_tokens"` && why != `"max_tokens"` {
			t.Errorf("%s: %v", row.path, d)
		}
	}
	events := stream(t, p, "/v1/responses", `{"model":"m","stream":true,"max_output_tokens":2,"input":"x"}`)
	compare(t, events[len(events)-1:], []string{`response.incomplete "incomplete" "max_output_tokens"`}, "response.status", "response.incomplete_details.reason")
}

func TestErrors(t *testing.T) {
	t.Parallel()
	p := provider(t, `
turns:
- match: slow
  error: {status: 429, type: rate_limit_error, message: slow down}
  headers: {Retry-After: "7"}
- error: {status: 529, type: overloaded_error, message: too many}
`)
	response := post(t, p, "/v1/chat/completions", ask("slow"))
	if response.StatusCode != 429 || response.Header.Get("Retry-After") != "7" {
		t.Errorf("%s %v", response.Status, response.Header)
	}
	for path, key := range map[string]string{"/v1/chat/completions": "messages", "/v1/responses": "input"} {
		if d := whole(t, p, path, strings.Replace(ask("x"), "messages", key, 1), 529); d.at("error") != `{"code":"overloaded_error","message":"too many","param":null,"type":"overloaded_error"}` {
			t.Errorf("%s: %v", path, d)
		}
	}
	streamed := strings.Replace(ask("x"), "{", `{"stream":true,`, 1)
	if d := whole(t, p, "/v1/messages", streamed, 529); d.at("type") != `"error"` || d.at("error") != `{"message":"too many","type":"overloaded_error"}` {
		t.Errorf("%v", d)
	}
	if d := whole(t, p, "/v1/messages", `{"messages":1}`, 400); d.at("error.type") != `"invalid_request_error"` {
		t.Errorf("%v", d)
	}
	if d := whole(t, p, "/v1/files", ``, 404); d.at("error.type") != `"not_found_error"` {
		t.Errorf("%v", d)
	}
}

// What a provider reports may differ from what was used, and be nonsense.
func TestLies(t *testing.T) {
	t.Parallel()
	p := provider(t, "turns: [{text: hello, usage: {in: 5, out: 5}, lie: {in: -3, out: 9007199254740993}}]")
	d := whole(t, p, "/v1/chat/completions", ask("x"), 200)
	if d.at("usage.prompt_tokens") != "-3" {
		t.Errorf("%v", d)
	}
	s, err := ParseScript([]byte("turns: [{text: hello, lie: {out: 9007199254740993}}]"))
	if err != nil || *s.Turns[0].Lie != (models.Usage{Out: 1<<53 + 1}) {
		t.Errorf("%+v, %v", s, err)
	}
}

// An endless answer ends with its client, in each format, as a stream and as none.
func TestEndless(t *testing.T) {
	t.Parallel()
	p := provider(t, "turns: [{text: 'more ', endless: true}]")
	for path, key := range map[string]string{"/v1/chat/completions": "messages", "/v1/responses": "input", "/v1/messages": "messages"} {
		for _, streamed := range []bool{true, false} {
			body := strings.Replace(ask("x"), "{", sprintf(`{"stream":%t,"max_tokens":1,`, streamed), 1)
			response := post(t, p, path, strings.Replace(body, "messages", key, 1))
			read, err := io.CopyN(io.Discard, response.Body, 1<<20)
			if err != nil {
				t.Errorf("%s: the answer ended after %d bytes: %v", path, read, err)
			}
			_ = response.Body.Close()
		}
	}
}

// The first event does not wait for the last: a client sees each when it is due.
func TestEventsAreFlushed(t *testing.T) {
	t.Parallel()
	p := provider(t, "turns: [{text: ab, chunk: 1, pace: 1h}]")
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, p.URL+"/v1/messages", strings.NewReader(strings.Replace(ask("x"), "{", `{"stream":true,`, 1)))
	if err != nil {
		t.Fatal(err)
	}
	response, err := p.Client().Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	reader := bufio.NewReader(response.Body)
	for _, want := range []string{"message_start", "ping", "content_block_start"} {
		if e, err := readEvent(reader); err != nil || e.name != want {
			t.Fatalf("%+v, %v", e, err)
		}
	}
}

// A client that leaves before an answer ends the wait for it.
func TestDelayEndsWithTheClient(t *testing.T) {
	t.Parallel()
	p := provider(t, "turns: [{match: late, text: x, delay: 1h}, {text: soon, delay: 30ms}]")
	began := time.Now()
	whole(t, p, "/v1/chat/completions", ask("x"), 200)
	if waited := time.Since(began); waited < 30*time.Millisecond {
		t.Errorf("answered after %s", waited)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, p.URL+"/v1/chat/completions", strings.NewReader(ask("late")))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Client().Do(request); err == nil {
		t.Error("answered an hour early")
	}
	p.Close() // waits until no handler runs
}
