package model

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

// form is a format as the tests have it.
type form struct {
	name      string // the server's
	hello, lo string // the events of the answer "hello", without the last
	end       string // the last
	ends      string // what says that the answer is whole
	stop      string // the end without text
	usage     string // 7 tokens of input, and none that make sense of output
	text      string // an event with a piece of text
	arguments string // one with a piece of arguments, behind begin
	begin     string
	failure   string
	calls     []string // two calls: exec {"a":1}, in pieces, and list
}

var forms = []form{{
	name:      "openai-chat",
	stop:      `{"choices":[{"delta":{},"finish_reason":"stop"}]}`,
	hello:     `{"choices":[{"delta":{"content":"hel"}}]}`,
	lo:        `{"choices":[{"delta":{"content":"lo"},"finish_reason":"stop"}]}`,
	end:       `[DONE]`,
	ends:      `"stop"}]}`,
	usage:     `{"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":-1}}`,
	text:      `{"choices":[{"delta":{"content":"%s"}}]}`,
	begin:     `{"choices":[]}`,
	arguments: `{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"%s"}}]}}]}`,
	failure:   `{"error":{"message":"no","code":%q}}`,
	calls: []string{`{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"x","function":{"name":"exec","arguments":"{\"a\":"}}]}}]}`,
		`{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"1}"}},{"index":1,"function":{"name":"list"}}]}}]}`},
}, {
	name:      "anthropic-messages",
	stop:      `{"type":"message_delta","delta":{"stop_reason":"end_turn"}}`,
	hello:     `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"hel"}}`,
	lo:        `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"lo"}}`,
	ends:      `"end_turn"`,
	end:       `{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":0}}`,
	usage:     `{"type":"message_start","message":{"usage":{"input_tokens":2,"cache_read_input_tokens":4,"cache_creation_input_tokens":1,"output_tokens":-1}}}`,
	text:      `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"%s"}}`,
	begin:     `{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"x","name":"exec","input":{}}}`,
	arguments: `{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"%s"}}`,
	failure:   `{"type":"error","error":{"type":%q,"message":"no"}}`,
	calls: []string{`{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"x","name":"exec","input":{}}}`,
		`{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":""}}`,
		`{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"a\":"}}`,
		`{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"1}"}}`,
		`{"type":"content_block_stop","index":1}`,
		`{"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"y","name":"list","input":{}}}`,
		`{"type":"content_block_stop","index":2}`,
		// What is not read may have any form.
		`{"type":"ping"}`, `{"type":"news","index":"x","delta":7,"usage":"none"}`,
		`{"type":"content_block_start","index":3,"content_block":{"type":"thinking","thinking":""}}`,
		`{"type":"content_block_delta","index":3,"delta":{"type":"thinking_delta","thinking":"hm"}}`,
		`{"type":"content_block_delta","index":1000000000,"delta":{"type":"input_json_delta","partial_json":"x"}}`},
}}

// server has one model, in the format, and answers calls of it as the function says.
func server(t *testing.T, format string, answer http.HandlerFunc) *httptest.Server {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch body, _ := io.ReadAll(r.Body); { // else the server does not see the client go
		case r.Method == http.MethodGet && r.URL.Path == "/v1/models/a/m":
			fmt.Fprintf(w, `{"id":"m","formats":[%q]}`, format)
		case r.URL.Path != map[string]string{"openai-chat": "/v1/chat/completions", "anthropic-messages": "/v1/messages"}[format] || !json.Valid(body):
			t.Errorf("%s %s", r.Method, r.URL.Path)
		default:
			answer(w, r)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

func client(s *httptest.Server) *Client {
	return &Client{URL: s.URL + "/v1", Model: "a/m", Pause: time.Millisecond}
}

var greeting = []Message{{Role: RoleUser, Content: "hello"}}

// served asks a server that answers as the functions say, one for each attempt.
func served(t *testing.T, f form, answers ...http.HandlerFunc) (answer Answer, calls int, err error) {
	t.Helper()
	s := server(t, f.name, func(w http.ResponseWriter, r *http.Request) {
		calls++
		answers[min(calls, len(answers))-1](w, r)
	})
	defer s.Close()
	answer, err = client(s).Ask(context.Background(), greeting, "", nil)
	return answer, calls, err
}

// each does a test for each format.
func each(t *testing.T, test func(t *testing.T, f form)) {
	for _, f := range forms {
		t.Run(f.name, func(t *testing.T) { test(t, f) })
	}
}

func events(lines ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, wire(lines...)) }
}

func wire(lines ...string) (text string) {
	for _, line := range lines {
		text += "event: x\r\ndata: " + line + "\r\n\r\n"
	}
	return text
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

func TestAnAnswerIsPutTogether(t *testing.T) {
	each(t, func(t *testing.T, f form) {
		lines := append([]string{f.usage, f.hello}, f.calls...)
		answer, _, err := served(t, f, events(append(lines, f.lo, f.end)...))
		if err != nil || answer.Message.Content != "hello" || answer.Cut || *answer.Usage != (Usage{7, 0}) || len(answer.Message.ToolCalls) != 2 {
			t.Fatalf("%+v, %v", answer, err)
		}
		calls := answer.Message.ToolCalls
		if calls[0].ID != "x" || calls[0].Function != (Function{"exec", `{"a":1}`}) || calls[1].ID == "" || calls[1].Function != (Function{"list", ""}) {
			t.Errorf("%+v", calls)
		}
	})
}

// An answer that is cut at a byte is whole, or broke off and is asked for again.
func TestAnAnswerIsCutAtEachByte(t *testing.T) {
	each(t, func(t *testing.T, f form) {
		whole := wire(append(append([]string{f.usage, f.hello}, f.calls...), f.lo, f.end)...)
		at, again := 0, 0
		s := server(t, f.name, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", strconv.Itoa(len(whole)))
			if at < 0 {
				io.WriteString(w, whole)
				return
			}
			io.WriteString(w, whole[:at])
			w.(http.Flusher).Flush()
			at = -1
			again++
			panic(http.ErrAbortHandler)
		})
		s.Config.ErrorLog = log.New(io.Discard, "", 0)
		c := client(s)
		for i := 0; i < len(whole); i += 41 {
			at = i
			a, err := c.Ask(context.Background(), greeting, "", nil)
			if err != nil || a.Message.Content != "hello" || len(a.Message.ToolCalls) != 2 || a.Message.ToolCalls[0].Function.Arguments != `{"a":1}` {
				t.Fatalf("cut at %d: %+v, %v", i, a, err)
			}
		}
		if again != len(whole)/41+1 {
			t.Errorf("cut %d times", again)
		}
		// The same without a server, for each byte.
		for i := range len(whole) {
			ended := false
			for _, end := range []error{io.EOF, io.ErrUnexpectedEOF} {
				st := stream{text: func(string) {}}
				err := st.read(io.MultiReader(strings.NewReader(whole[:i]), iotest.ErrReader(end)), c.format, func() {})
				var failure *Failure
				if ended = ended || err == nil; err != nil && (!errors.As(err, &failure) || !failure.again) {
					t.Fatalf("cut at %d: %v", i, err)
				}
			}
			if a := i < strings.Index(whole, f.ends); ended && a {
				t.Fatalf("cut at %d, the answer is taken for a whole one", i)
			}
		}
	})
}

// What may help is repeated, and nothing else.
func TestWhatIsRepeated(t *testing.T) {
	each(t, func(t *testing.T, f form) {
		whole := events(f.hello, f.lo, f.end)
		for name, row := range map[string]struct {
			first http.HandlerFunc
			calls int
			spent bool
		}{
			"busy":             {refuse(529, "{}"), 2, false},
			"broken off":       {events(f.hello), 2, false},
			"an error":         {events(f.hello, fmt.Sprintf(f.failure, "overloaded_error")), 2, false},
			"no, says it":      {refuse(503, "{}", "x-should-retry", "false"), 1, false},
			"wrong":            {refuse(400, `{"type":"error","error":{"message":"no such model"}}`), 1, false},
			"spent":            {refuse(429, `{"error":{"message":"no","code":"insufficient_quota"}}`), 1, true},
			"spent, 402":       {refuse(402, `{"type":"error","error":{"type":"billing_error","message":"no"}}`), 1, true},
			"spent meanwhile":  {events(f.hello, fmt.Sprintf(f.failure, map[string]string{"openai-chat": "insufficient_quota", "anthropic-messages": "billing_error"}[f.name])), 1, true},
			"another place":    {refuse(302, "", "Location", "http://127.0.0.1:1/"), 1, false},
			"an event no JSON": {events("{"), 1, false},
		} {
			_, calls, err := served(t, f, row.first, whole)
			var failure *Failure
			if calls != row.calls || (err == nil) != (row.calls == 2) || errors.As(err, &failure) && failure.Spent != row.spent {
				t.Errorf("%s: %d calls, %v", name, calls, err)
			}
		}
		if _, calls, _ := served(t, f, refuse(500, "{}")); calls != attempts {
			t.Errorf("a server that is always busy is asked %d times", calls)
		}
	})
}

// An answer without an end, of each form, is refused, and little memory is used. The control is an
// answer just below the bound.
func TestAnAnswerWithoutAnEnd(t *testing.T) {
	piece := strings.Repeat("x", 32<<10)
	endless := func(begin, form string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			io.WriteString(w, wire(begin))
			for written := 0; written < 1<<30; written += len(piece) {
				if _, err := fmt.Fprintf(w, form, piece); err != nil {
					return
				}
			}
		}
	}
	each(t, func(t *testing.T, f form) {
		for name, form := range map[string]string{
			"text":      wire(f.text),
			"arguments": wire(f.arguments),
			"a line":    "%s",
			"comments":  ": %s\n",
		} {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, calls, err := served(t, f, endless(f.begin, form))
			runtime.GC()
			runtime.ReadMemStats(&after)
			var failure *Failure
			if !errors.As(err, &failure) || calls != 1 || !strings.Contains(failure.Message, "bytes") {
				t.Errorf("%s: %d calls, %v", name, calls, err)
			}
			if after.HeapInuse > before.HeapInuse+64<<20 {
				t.Errorf("%s: %d bytes are held", name, after.HeapInuse)
			}
		}
		if _, _, err := served(t, f, events(fmt.Sprintf(f.text, strings.Repeat("x", MaxAnswer)), f.stop)); err != nil {
			t.Errorf("control: %v", err)
		}
	})
	if _, _, err := served(t, forms[0], events(`{"choices":[{"delta":{"tool_calls":[{"index":1000000000,"id":"x"}]}}]}`)); err == nil {
		t.Error("a call far behind the others is taken")
	}
	many := make([]string, maxCalls+1)
	for i := range many {
		many[i] = forms[1].begin
	}
	if _, _, err := served(t, forms[1], events(many...)); err == nil || !strings.Contains(err.Error(), "more than 64 tool calls") {
		t.Errorf("%v", err)
	}
	if a, _, err := served(t, forms[1], events(append(many[1:], forms[1].end)...)); err != nil || len(a.Message.ToolCalls) != maxCalls {
		t.Errorf("control: %v", err)
	}
}

// An interrupted answer has what came.
func TestAnAnswerIsInterrupted(t *testing.T) {
	each(t, func(t *testing.T, f form) {
		s := server(t, f.name, func(w http.ResponseWriter, r *http.Request) {
			events(f.hello)(w, r)
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		})
		ctx, cancel := context.WithCancel(context.Background())
		answer, err := client(s).Ask(ctx, nil, "", func(string) { cancel() })
		if err == nil || answer.Message.Content != "hel" {
			t.Errorf("%+v, %v", answer, err)
		}
	})
}

// An answer at the maximum of output is cut, and one that the model refuses is no answer.
func TestTheEndsOfAnswers(t *testing.T) {
	for reason, cut := range map[string]bool{"max_tokens": true, "model_context_window_exceeded": true, "tool_use": false, "end_turn": false} {
		if a, _, err := served(t, forms[1], events(forms[1].hello, strings.Replace(forms[1].end, "end_turn", reason, 1))); err != nil || a.Cut != cut {
			t.Errorf("%s: %+v, %v", reason, a, err)
		}
	}
	if _, calls, err := served(t, forms[1], events(strings.Replace(forms[1].end, "end_turn", "refusal", 1))); err == nil || calls != 1 {
		t.Errorf("%d calls, %v", calls, err)
	}
	// Nothing is read behind the last event, which a server may leave open.
	s := server(t, forms[1].name, func(w http.ResponseWriter, r *http.Request) {
		events(forms[1].hello, forms[1].end, `{"type":"message_stop"}`)(w, r)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if a, err := client(s).Ask(ctx, greeting, "", nil); err != nil || a.Message.Content != "hel" {
		t.Errorf("%+v, %v", a, err)
	}
}
