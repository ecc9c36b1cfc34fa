package model

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// The format is asked for once, again where that may help, and a server that does not say has chat
// completions.
func TestTheFormatIsLearned(t *testing.T) {
	for name, row := range map[string]struct {
		answers []http.HandlerFunc // to GET, one for each time
		path    string             // of the calls; empty: there are none
	}{
		"both":            {[]http.HandlerFunc{refuse(200, `{"formats":["openai-chat","anthropic-messages"]}`)}, "/chat/completions"},
		"messages alone":  {[]http.HandlerFunc{refuse(200, `{"formats":["anthropic-count","anthropic-messages"]}`)}, "/messages"},
		"busy at first":   {[]http.HandlerFunc{refuse(503, "{}"), refuse(200, `{"formats":["anthropic-messages"]}`)}, "/messages"},
		"it does not say": {[]http.HandlerFunc{refuse(200, `{"id":"m"}`)}, "/chat/completions"},
		"no such path":    {[]http.HandlerFunc{refuse(404, "")}, "/chat/completions"},
		"no JSON":         {[]http.HandlerFunc{refuse(200, "<html>")}, "/chat/completions"},
		"neither":         {[]http.HandlerFunc{refuse(200, `{"formats":["openai-responses"]}`)}, ""},
	} {
		asked, paths := 0, ""
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodGet {
				asked++
				row.answers[asked-1](w, r)
				return
			}
			paths += r.URL.Path + " "
			events(forms[0].lo)(w, r)
			events(forms[1].end)(w, r)
		}))
		c := &Client{URL: s.URL, Model: "m", Pause: time.Millisecond}
		for range 2 {
			if _, err := c.Ask(context.Background(), greeting, "", nil); (row.path == "") != (err != nil && strings.Contains(err.Error(), "openai-responses")) {
				t.Errorf("%s: %v", name, err)
			}
			if row.path == "" {
				row.answers = append(row.answers, row.answers[0])
			}
		}
		if want := strings.Repeat(row.path+" ", 2); asked != len(row.answers)-map[bool]int{true: 1}[row.path == ""] || row.path != "" && paths != want {
			t.Errorf("%s: asked %d times, %q", name, asked, paths)
		}
		s.Close()
	}
}

// A conversation of any provider has the form that Anthropic takes: two sides in turns, the results
// of an answer's calls together, no blank text, unique and plain ids and names, arguments as objects
// that have each name once.
func TestAConversationAsMessages(t *testing.T) {
	call := func(id, name, arguments string) ToolCall {
		return ToolCall{id, "function", Function{name, arguments}}
	}
	all := []Message{
		{Role: RoleSystem, Content: "be brief"},
		{Role: RoleUser, Content: "do it"},
		{Role: RoleAssistant, Content: " ", ToolCalls: []ToolCall{call("call_0", "exec", `{"a":12345678901234567890,"a":"\ud800"}`), call("functions.x:1", "my.tool", "")}},
		{Role: RoleTool, Content: "one", ToolCallID: "call_0"},
		{Role: RoleTool, Content: "", ToolCallID: "functions.x:1"},
		{Role: RoleUser, Content: "go on"},
		{Role: RoleAssistant, Content: "well", ToolCalls: []ToolCall{call("call_0", "", `{"cut`), call("call_1", "list", `[1]`), call("call_2", "list", "null")}},
		{Role: RoleTool, Content: "two", ToolCallID: "call_0"},
		{Role: RoleTool, Content: "three", ToolCallID: "call_1"},
		{Role: RoleTool, Content: "four", ToolCallID: "call_2"},
		{Role: RoleAssistant, Content: ""},
		{Role: RoleUser, Content: "and now?"},
	}
	want := `[{"role":"user","content":[{"text":"do it","type":"text"}]},` +
		`{"role":"assistant","content":[{"id":"call_1","input":{"a":"` + "\ufffd" + `"},"name":"exec","type":"tool_use"},{"id":"call_2","input":{},"name":"my_tool","type":"tool_use"}]},` +
		`{"role":"user","content":[{"content":"one","tool_use_id":"call_1","type":"tool_result"},{"content":"","tool_use_id":"call_2","type":"tool_result"},{"text":"go on","type":"text"}]},` +
		`{"role":"assistant","content":[{"text":"well","type":"text"},{"id":"call_3","input":{"not_an_object":"{\"cut"},"name":"_","type":"tool_use"},` +
		`{"id":"call_4","input":{"not_an_object":"[1]"},"name":"list","type":"tool_use"},{"id":"call_5","input":{"not_an_object":"null"},"name":"list","type":"tool_use"}]},` +
		`{"role":"user","content":[{"content":"two","tool_use_id":"call_3","type":"tool_result"},{"content":"three","tool_use_id":"call_4","type":"tool_result"},` +
		`{"content":"four","tool_use_id":"call_5","type":"tool_result"},{"cache_control":{"type":"ephemeral"},"text":"and now?","type":"text"}]}]`
	var body struct {
		Model, System string
		Stream        bool
		Messages      json.RawMessage
		Tools         []map[string]json.RawMessage
		Choice        map[string]string `json:"tool_choice"`
	}
	s := server(t, "anthropic-messages", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Api-Key") != "k" || r.Header.Get("Anthropic-Version") == "" {
			t.Errorf("%v", r.Header)
		}
		events(forms[1].end)(w, r)
	})
	c := client(s)
	c.Key, c.Tools, c.HTTP = "k", []Tool{{"list", "it lists", json.RawMessage(`{"type":"object"}`)}}, &http.Client{Transport: watching(func(text []byte) {
		if len(text) > 0 {
			if err := json.Unmarshal(text, &body); err != nil {
				t.Error(err)
			}
		}
	})}
	if _, err := c.Ask(context.Background(), all, "none", nil); err != nil {
		t.Fatal(err)
	}
	if string(body.Messages) != want {
		t.Errorf("got  %s\nwant %s", body.Messages, want)
	}
	if body.Model != "a/m" || body.System != "be brief" || !body.Stream || body.Choice["type"] != "none" || len(body.Tools) != 1 || string(body.Tools[0]["input_schema"]) != `{"type":"object"}` || string(body.Tools[0]["name"]) != `"list"` {
		t.Errorf("%+v", body)
	}
}

// watching is a transport that shows the bodies of requests.
type watching func(body []byte)

func (see watching) RoundTrip(r *http.Request) (*http.Response, error) {
	if reader, err := r.GetBody(); err == nil {
		text, _ := io.ReadAll(reader)
		see(text)
	}
	return http.DefaultTransport.RoundTrip(r)
}
