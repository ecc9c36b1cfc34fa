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
		d.results[t.Name] = shapeOf(t.Result)
	}
	return all, after, nil
}

// shape is what a tool's result is.
type shape int

const (
	plain  shape = iota // text
	object              // an object of JSON, with a schema
	value               // any value of JSON, with a schema: only of revisions without sessions
)

func shapeOf(schema json.RawMessage) shape {
	if len(schema) == 0 || string(schema) == "null" {
		return plain
	}
	if _, is := objectSchema(schema); is {
		return object
	}
	return value
}

// maxKnown bounds the tools of which the shape of their result is kept.
const maxKnown = 10000

// shape is that of a tool's result. For a tool that was not listed yet it lists.
func (d *door) shape(ctx context.Context, name string) shape {
	for after, first := "", true; ; first = false {
		d.mu.Lock()
		known, is := d.results[name]
		if !is && !first && after == "" {
			d.results[name], is = plain, true // until a list has it
		}
		d.mu.Unlock()
		if is {
			return known
		}
		var err error
		if _, after, err = d.list(ctx, after); err != nil {
			return plain
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
	switch result, _ := objectSchema(t.Result); shapeOf(t.Result) {
	case object:
		shown.OutputSchema = result
	case value:
		if revision >= stateless {
			shown.OutputSchema = t.Result
		}
	}
	return shown
}

// objectSchema is a schema that has the type object; absent: of any object. It reports whether it is one of an
// object.
func objectSchema(schema json.RawMessage) (json.RawMessage, bool) {
	if len(schema) == 0 || string(schema) == "null" {
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
