package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"clove.run/clove/api"
	"clove.run/clove/api/agents"
)

// findService returns the service that is a tool's name.
func findService(name string) (service, bool) {
	rest, is := strings.CutPrefix(name, prefix)
	i := slices.IndexFunc(services, func(s service) bool { return s.tool == rest })
	if !is || i < 0 {
		return service{}, false
	}
	return services[i], true
}

func isService(name string) bool {
	_, is := findService(name)
	return is
}

// listedServices are the services as clients get them, in the order of the table.
var listedServices = sync.OnceValue(func() []*sdk.Tool {
	var all []*sdk.Tool
	no := false
	for _, s := range services {
		destructive := s.hint == overwrite
		all = append(all, &sdk.Tool{Name: prefix + s.tool, Description: s.doc, InputSchema: schemaOf(s.method.Params, s.fields),
			Annotations: &sdk.ToolAnnotations{ReadOnlyHint: s.hint == reads, DestructiveHint: &destructive, OpenWorldHint: &no}})
	}
	return all
})

// shownServices are those that a run with these grants could use.
func shownServices(kinds map[string]bool) []*sdk.Tool {
	var shown []*sdk.Tool
	for i, s := range services {
		if kinds == nil || len(s.needs) == 0 || slices.ContainsFunc(s.needs, func(kind string) bool { return kinds[kind] }) {
			shown = append(shown, listedServices()[i])
		}
	}
	return shown
}

// held are the kinds of the grants that the run holds; nil: it is not known.
func (d *door) held(ctx context.Context) map[string]bool {
	kinds := map[string]bool{}
	var p api.GrantListParams
	for {
		part, err := ask(ctx, d, agents.GrantList, p)
		if err != nil {
			return nil
		}
		for _, g := range part.Grants {
			kind, _, _ := strings.Cut(g.Grant, ":")
			kinds[kind] = true
		}
		if p.After = part.Next; p.After == "" || len(part.Grants) == 0 {
			return kinds
		}
	}
}

// callService calls a method of the kernel's. Its answer is JSON.
func (d *door) callService(ctx context.Context, s service, arguments json.RawMessage) (*sdk.CallToolResult, error) {
	params, wait, err := s.params(arguments, d.times.wait)
	if err != nil {
		return failed(explained(api.ErrorOf(err))), nil
	}
	waiting := ctx
	if s.method.Waits {
		var cancel context.CancelFunc
		waiting, cancel = context.WithTimeout(ctx, wait)
		defer cancel()
		defer context.AfterFunc(d.leaving, cancel)()
	}
	result, err := d.caller.Call(waiting, s.method.Name, params, s.method.Waits)
	switch e := new(api.Error); {
	case err == nil:
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: string(result)}}}, nil
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case d.leaving.Err() != nil:
		return failed("busy: clove is away\nhint: call it again in a moment"), nil
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &e) && e.Data.Rule == api.RuleWithin:
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "nothing yet: call it again to go on waiting"}}}, nil
	}
	return failed(explained(api.ErrorOf(err))), nil
}

// grace is what the other side has to say that the time of a call is over. It is away else.
const grace = 10 * time.Second

// params are the arguments as the method's own type encodes them: the other side reads no text of the
// client's. most is how long a call that waits does at most: as the arguments say, or else wait.
func (s service) params(arguments json.RawMessage, wait time.Duration) (text json.RawMessage, most time.Duration, err error) {
	var given map[string]json.RawMessage
	if err := json.Unmarshal(arguments, &given); err != nil {
		return nil, 0, api.Failure(api.CodeParams, "", "the arguments cannot be read")
	}
	for name := range given {
		if !slices.ContainsFunc(s.fields, func(f field) bool { return f.name == name }) {
			return nil, 0, api.Failure(api.CodeParams, "the tool's schema has all", "there is no argument %.64q", name)
		}
	}
	most = wait
	for _, f := range s.fields {
		_, has := given[f.name]
		if f.required && !has {
			return nil, 0, api.Failure(api.CodeParams, f.doc, "the argument %s is missing", f.name)
		}
		if f.name == within {
			if !has {
				given[within] = json.RawMessage(fmt.Sprint(wait.Milliseconds()))
			}
			most = bound(given[within]) + grace
		}
	}
	if text, err = json.Marshal(given); err != nil {
		return nil, 0, err
	}
	value, err := s.method.Decode(text)
	if err != nil {
		return nil, 0, err
	}
	text, err = json.Marshal(value)
	return text, most, err
}

// within is the parameter that bounds how long a call waits, in milliseconds.
const within = "within_ms"

// bound is a value of it, of at most a day. What is none, the method refuses.
func bound(value json.RawMessage) time.Duration {
	var ms int64
	_ = json.Unmarshal(value, &ms)
	return time.Duration(min(max(ms, 0), 24*time.Hour.Milliseconds())) * time.Millisecond
}
