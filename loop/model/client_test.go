package model

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"
)

// served asks a server that answers as the functions say, one for each attempt.
func served(t *testing.T, answers ...http.HandlerFunc) (answer Answer, calls int, err error) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		calls++
		answers[min(calls, len(answers))-1](w, r)
	}))
	defer server.Close()
	c := &Client{URL: server.URL + "/v1", Model: "m", Pause: time.Millisecond}
	answer, err = c.Ask(context.Background(), []Message{{Role: RoleUser, Content: "hello"}}, "", nil)
	return answer, calls, err
}

func events(lines ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for _, line := range lines {
			fmt.Fprintf(w, "data: %s\n\n", line)
		}
	}
}

func refuse(status int, body string, headers ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i+1 < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(status)
		io.WriteString(w, body)
	}
}

const (
	hello = `{"choices":[{"delta":{"content":"hel"}}]}`
	lo    = `{"choices":[{"delta":{"content":"lo"},"finish_reason":"stop"}]}`
	usage = `{"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":-1}}`
)

func TestAnAnswerIsPutTogether(t *testing.T) {
	answer, _, err := served(t, events(hello,
		`{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"x","function":{"name":"exec","arguments":"{\"a\":"}}]}}]}`,
		`{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"1}"}},{"index":1,"function":{"name":"list"}}]}}]}`, lo, usage, "[DONE]"))
	if err != nil || answer.Message.Content != "hello" || *answer.Usage != (Usage{7, 0}) || len(answer.Message.ToolCalls) != 2 {
		t.Fatalf("%+v, %v", answer, err)
	}
	calls := answer.Message.ToolCalls
	if calls[0].ID != "x" || calls[0].Function != (Function{"exec", `{"a":1}`}) || calls[1].ID == "" {
		t.Errorf("%+v", calls)
	}
}

// What may help is repeated, and nothing else.
func TestWhatIsRepeated(t *testing.T) {
	whole := events(hello, lo)
	for name, row := range map[string]struct {
		first http.HandlerFunc
		calls int
	}{
		"busy":             {refuse(529, "{}"), 2},
		"broken off":       {events(hello), 2},
		"no, says it":      {refuse(503, "{}", "x-should-retry", "false"), 1},
		"wrong":            {refuse(400, `{"error":{"message":"no such model"}}`), 1},
		"spent":            {refuse(429, `{"error":{"message":"no","code":"insufficient_quota"}}`), 1},
		"another place":    {refuse(302, "", "Location", "http://127.0.0.1:1/"), 1},
		"an event no JSON": {events("{"), 1},
	} {
		if _, calls, err := served(t, row.first, whole); calls != row.calls || (err == nil) != (row.calls == 2) {
			t.Errorf("%s: %d calls, %v", name, calls, err)
		}
	}
	if _, calls, _ := served(t, refuse(500, "{}")); calls != attempts {
		t.Errorf("a server that is always busy is asked %d times", calls)
	}
}

// An answer without an end, of each form, is refused, and little memory is used. The control is an
// answer just below the bound.
func TestAnAnswerWithoutAnEnd(t *testing.T) {
	piece := strings.Repeat("x", 32<<10)
	endless := func(form string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			for written := 0; written < 1<<30; written += len(piece) {
				if _, err := fmt.Fprintf(w, form, piece); err != nil {
					return
				}
			}
		}
	}
	for name, form := range map[string]string{
		"text":      "data: {\"choices\":[{\"delta\":{\"content\":\"%s\"}}]}\n\n",
		"arguments": "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\"%s\"}}]}}]}\n\n",
		"a line":    "%s",
		"comments":  ": %s\n",
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, calls, err := served(t, endless(form))
		runtime.GC()
		runtime.ReadMemStats(&after)
		var f *Failure
		if !errors.As(err, &f) || calls != 1 || !strings.Contains(f.Message, "bytes") {
			t.Errorf("%s: %d calls, %v", name, calls, err)
		}
		if after.HeapInuse > before.HeapInuse+64<<20 {
			t.Errorf("%s: %d bytes are held", name, after.HeapInuse)
		}
	}
	if _, _, err := served(t, events(fmt.Sprintf(`{"choices":[{"delta":{"content":%q},"finish_reason":"stop"}]}`, strings.Repeat("x", MaxAnswer)))); err != nil {
		t.Errorf("control: %v", err)
	}
	if _, _, err := served(t, events(`{"choices":[{"delta":{"tool_calls":[{"index":1000000000,"id":"x"}]}}]}`)); err == nil {
		t.Error("a call far behind the others is taken")
	}
}

// An interrupted answer has what came.
func TestAnAnswerIsInterrupted(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body) // else the server does not see the client go
		events(hello)(w, r)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}))
	defer server.Close()
	ctx, cancel := context.WithCancel(context.Background())
	answer, err := (&Client{URL: server.URL, Model: "m"}).Ask(ctx, nil, "", func(string) { cancel() })
	if err == nil || answer.Message.Content != "hel" {
		t.Errorf("%+v, %v", answer, err)
	}
}
