package mcp

import (
	"context"
	"encoding/json"
	"slices"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"clove.run/clove/api"
	"clove.run/clove/api/agents"
	"clove.run/clove/tools"
)

// maxListBytes bounds the parts of one answer to tools/list; the client asks for the rest.
const maxListBytes = 1 << 20

// private are answers that hold for one client, now.
var private = sdk.Cacheable{CacheScope: "private"}

// listTools lists the tools of the other side, all parts that fit into one answer, and behind the last one the
// services of the kernel.
func (d *door) listTools(ctx context.Context, r *sdk.ListToolsRequest) (sdk.Result, error) {
	var after string
	if r.Params != nil {
		after = r.Params.Cursor
	}
	listed, next, err := d.list(ctx, after)
	if err != nil {
		return nil, refused(err)
	}
	result := &sdk.ListToolsResult{Cacheable: private, Tools: []*sdk.Tool{}, NextCursor: next}
	for _, t := range listed {
		if shown := shownTool(t, r.ProtocolVersion()); shown != nil {
			result.Tools = append(result.Tools, shown)
		}
	}
	if next == "" && d.Kernel {
		result.Tools = append(result.Tools, shownServices(d.held(ctx))...)
	}
	return result, nil
}

// list lists tools behind a cursor. next is where it goes on; empty: that was all.
func (d *door) list(ctx context.Context, after string) (all []tools.Tool, next string, err error) {
	d.listing.Lock()
	defer d.listing.Unlock()
	bytes := 0
	for {
		part, err := ask(ctx, d, agents.ToolList, api.ToolListParams{After: after})
		if err != nil {
			return nil, "", err
		}
		for _, t := range part.Tools {
			bytes += len(t.Arguments) + len(t.Result) + len(t.Description) + len(t.Title) + len(t.Name)
		}
		all = append(all, part.Tools...)
		if after = part.Next; after == "" || bytes > maxListBytes || len(part.Tools) == 0 {
			break
		}
	}
	if d.Kernel {
		all = slices.DeleteFunc(all, func(t tools.Tool) bool { return isService(t.Name) }) // a service has one meaning
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, t := range all {
		if len(d.results) >= maxKnown {
			clear(d.results)
		}
		d.results[t.Name] = len(t.Result) > 0
	}
	return all, after, nil
}

// maxKnown bounds the tools of which it is kept whether they have a schema of their result.
const maxKnown = 10000

// structured reports whether a tool has a schema of its result. For one that was not listed yet it lists.
func (d *door) structured(ctx context.Context, name string) bool {
	for after, first := "", true; ; first = false {
		d.mu.Lock()
		has, known := d.results[name]
		d.mu.Unlock()
		if known || !first && after == "" {
			return has
		}
		var err error
		if _, after, err = d.list(ctx, after); err != nil {
			return false
		}
	}
}

// shownTool is a tool as clients get it; nil: no client takes a tool whose arguments are no object, and some
// take no list with such a one.
func shownTool(t tools.Tool, revision string) *sdk.Tool {
	arguments, ok := objectSchema(t.Arguments)
	if !ok {
		return nil
	}
	shown := &sdk.Tool{Name: t.Name, Title: t.Title, Description: t.Description, InputSchema: arguments, Annotations: shownAnnotations(t.Annotations)}
	if result, ok := objectSchema(t.Result); ok && len(t.Result) > 0 {
		shown.OutputSchema = result
	} else if revision >= stateless && len(t.Result) > 0 {
		shown.OutputSchema = t.Result // before, a result was an object
	}
	return shown
}

// objectSchema is a schema that has the type object; absent: of any object. It reports whether it is one of an
// object.
func objectSchema(schema json.RawMessage) (json.RawMessage, bool) {
	if len(schema) == 0 {
		return json.RawMessage(`{"type":"object"}`), true
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(schema, &fields) != nil || fields == nil {
		return nil, false
	}
	of, has := fields["type"]
	if has {
		return schema, string(of) == `"object"`
	}
	fields["type"] = json.RawMessage(`"object"`)
	text, err := json.Marshal(fields)
	return text, err == nil
}

func shownAnnotations(a tools.Annotations) *sdk.ToolAnnotations {
	if a == (tools.Annotations{}) {
		return nil
	}
	is := func(b *bool) bool { return b != nil && *b }
	return &sdk.ToolAnnotations{ReadOnlyHint: is(a.ReadOnly), DestructiveHint: a.Destructive, IdempotentHint: is(a.Idempotent), OpenWorldHint: a.OpenWorld}
}
