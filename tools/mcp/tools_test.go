package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"clove.run/clove/api"
	"clove.run/clove/tools"
)

func TestToolsAreListedAndCalled(t *testing.T) {
	t.Parallel()
	yes, no := true, false
	r := newRig(t, func(r *rig) {
		r.tools[0].Annotations = tools.Annotations{ReadOnly: &yes, Destructive: &no, OpenWorld: &no}
		for i := range 9 {
			r.tools = append(r.tools, tools.Tool{Name: fmt.Sprint("more", i), Arguments: json.RawMessage(`{"properties":{}}`)})
		}
		r.tools = append(r.tools, tools.Tool{Name: "list", Arguments: json.RawMessage(`{"type":"array"}`)})
		r.pages = 4
	})
	for _, revision := range revisions {
		session := r.connect(revision, nil)
		if info := session.InitializeResult().ServerInfo; info == nil || info.Name != "clove" || info.Title != "tools of a test" {
			t.Errorf("%s: %+v", revision, info)
		}
		list, err := session.ListTools(t.Context(), nil)
		must(t, err)
		if len(list.Tools) != 10 || list.NextCursor != "" || list.CacheScope != "private" && revision == revisionNew {
			t.Errorf("%s: %d tools, %+v", revision, len(list.Tools), list.Cacheable)
		}
		echo := list.Tools[0]
		if a := echo.Annotations; echo.Name != "echo" || echo.Description != "says it again" || !a.ReadOnlyHint || *a.DestructiveHint || *a.OpenWorldHint || a.IdempotentHint {
			t.Errorf("%s: %+v, %+v", revision, echo, a)
		}
		if result := call(t, session, "echo", `{"text":"hello"}`); result.IsError || texts(result) != `{"text":"hello"}` {
			t.Errorf("%s: %+v", revision, texts(result))
		}
		// A grant that is given later holds at once, and so does one that is taken.
		r.rename("other")
		list, err = session.ListTools(t.Context(), nil)
		must(t, err)
		if list.Tools[0].Name != "other" {
			t.Errorf("%s: %+v", revision, list.Tools[0])
		}
		r.rename("echo")
	}
}

// What a call gives, as clients see it.
func TestResults(t *testing.T) {
	t.Parallel()
	object := json.RawMessage(`{"type":"object"}`)
	rows := map[string]struct {
		schema     json.RawMessage
		result     api.ToolCallResult
		err        error
		failed     bool
		text       string
		structured string // of both revisions, unless only is set
		only       string
	}{
		"text":        {result: api.ToolCallResult{Text: "hello"}, text: "hello"},
		"empty":       {result: api.ToolCallResult{}, text: ""},
		"failed":      {result: api.ToolCallResult{Failed: true, Text: "a part", Error: "it broke"}, failed: true, text: "a part|it broke"},
		"left":        {result: api.ToolCallResult{Text: "x", Left: 5}, text: "x|[5 more bytes of the result were dropped]"},
		"object":      {schema: object, result: api.ToolCallResult{Text: ` {"a":1}`}, text: ` {"a":1}`, structured: `{"a":1}`},
		"list":        {schema: json.RawMessage(`{"type":"array"}`), result: api.ToolCallResult{Text: `[1]`}, text: `[1]`, structured: `[1]`, only: revisionNew},
		"list, old":   {schema: json.RawMessage(`{"type":"array"}`), result: api.ToolCallResult{Text: `[1]`}, text: `[1]`, only: revisionOld},
		"no object":   {schema: object, result: api.ToolCallResult{Text: `[1]`}, failed: true, text: `[1]|the result is not of the tool's schema`},
		"no JSON":     {schema: object, result: api.ToolCallResult{Text: `{"a"`}, failed: true, text: `{"a"|the result is not of the tool's schema`},
		"too long":    {schema: object, result: api.ToolCallResult{Text: `{}`, Left: 1}, failed: true, text: "{}|[1 more bytes of the result were dropped]|the result is too long for one of the tool's schema"},
		"fails, JSON": {schema: object, result: api.ToolCallResult{Failed: true, Error: "no"}, failed: true, text: "no"},
		"denied":      {err: api.Failure(api.CodeDenied, "ask for a grant", "no grant covers it"), failed: true, text: "denied: no grant covers it\nhint: ask for a grant"},
		"budget":      {err: api.Failure(api.CodeBudget, "wait", "nothing is left"), failed: true, text: "budget: nothing is left\nhint: wait"},
		"busy":        {err: api.Failure(api.CodeBusy, "", "too many"), failed: true, text: "busy: too many\nhint: try again in a moment"},
		"params":      {err: api.Failure(api.CodeParams, "look", "no"), failed: true, text: "invalid: no\nhint: look"},
	}
	r := newRig(t, func(r *rig) {
		r.answer = func(_ called, p api.ToolCallParams) (api.ToolCallResult, error) {
			return rows[p.Tool].result, rows[p.Tool].err
		}
		for name, row := range rows {
			r.tools = append(r.tools, tools.Tool{Name: name, Result: row.schema})
		}
	})
	for _, revision := range revisions {
		session := r.connect(revision, nil)
		for name, row := range rows {
			if row.only != "" && row.only != revision {
				continue
			}
			result := call(t, session, name, "{}")
			if got := texts(result); got != row.text || result.IsError != row.failed {
				t.Errorf("%s, %s: %q, %t", revision, name, got, result.IsError)
			}
			structured, err := json.Marshal(result.StructuredContent)
			must(t, err)
			if row.structured == "" {
				row.structured = "null"
			}
			if string(structured) != row.structured {
				t.Errorf("%s, %s: %s", revision, name, structured)
			}
		}
	}
}

// Mistakes of a caller.
func TestCallsThatAreNone(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	for _, revision := range revisions {
		session := r.connect(revision, nil)
		_, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: "none"})
		if e := new(jsonrpc.Error); !errors.As(err, &e) || e.Code != jsonrpc.CodeInvalidParams || !strings.Contains(e.Message, `unknown tool "none"`) {
			t.Errorf("%s: %v", revision, err)
		}
		r.next("tool.call")
		for arguments, want := range map[string]string{
			"[1]": "the arguments are an object",
			`{"text":"` + strings.Repeat("a", tools.MaxArguments) + `"}`: "the arguments have more than 49152 bytes: send less at once",
		} {
			if result := call(t, session, "echo", arguments); !result.IsError || texts(result) != want {
				t.Errorf("%s, %.10s: %s", revision, arguments, texts(result))
			}
		}
		if n := len(r.calls); n != 0 {
			t.Errorf("%s: %d calls were made", revision, n)
		}
	}
}

// A list that is larger than one answer goes on in another.
func TestALongList(t *testing.T) {
	t.Parallel()
	const size = 30 << 10
	r := newRig(t, func(r *rig) {
		r.tools, r.pages = nil, 2
		for i := range 50 {
			r.tools = append(r.tools, tools.Tool{Name: fmt.Sprint("tool", i), Arguments: json.RawMessage(`{"type":"object","x":"` + strings.Repeat("a", size) + `"}`)})
		}
	})
	session := r.connect(revisionNew, nil)
	var names []string
	cursor, answers := "", 0
	for {
		part, err := session.ListTools(context.Background(), &sdk.ListToolsParams{Cursor: cursor})
		must(t, err)
		for _, tool := range part.Tools {
			names = append(names, tool.Name)
		}
		if answers++; len(part.Tools)*size > maxListBytes+2*size {
			t.Errorf("%d tools in one answer", len(part.Tools))
		}
		if cursor = part.NextCursor; cursor == "" {
			break
		}
	}
	slices.Sort(names)
	if names = slices.Compact(names); len(names) != 50 || answers < 2 {
		t.Errorf("%d tools in %d answers", len(names), answers)
	}
}
