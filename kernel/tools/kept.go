package tools

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"clove.run/clove/api"
	"clove.run/clove/kernel/service"
	"clove.run/clove/store"
	"clove.run/clove/tools"
)

// toolsMost bounds the tools of a user.
const toolsMost = 128

// row is a tool that a user has added.
type row struct {
	Owner uint32           `json:"owner"`
	Tool  tools.Definition `json:"tool"`
	Added time.Time        `json:"added"`
}

func key(owner uint32, name string) string { return fmt.Sprintf("%d/%s", owner, name) }

// byOwner is the index of tools by their owner.
const byOwner = "tools_by_owner"

// rows is their table.
var rows = store.Table[row]{
	Bucket: "tools", Noun: "tool", Key: func(r *row) string { return key(r.Owner, r.Tool.Name) },
	Sound: func(r *row) error { return r.Tool.Validate() },
	Indexes: []store.Index[row]{{Bucket: byOwner, Terms: func(r *row) []string { return []string{strconv.FormatUint(uint64(r.Owner), 10)} },
		Bound: store.Bound[row]{Most: toolsMost, Error: func(*row) error {
			return api.Failure(api.CodeBusy, "clove tool rm", "a user has at most %d tools", toolsMost)
		}}}},
}

// Tables are those of the service.
func Tables() []store.Declared { return []store.Declared{rows} }

// all are the tools of a user and those that are built in, by name.
func all(tx *store.KernelTx, owner uint32) (sorted []api.KeptTool, err error) {
	for _, d := range tools.Builtins() {
		sorted = append(sorted, api.KeptTool{Definition: d})
	}
	own, err := rows.Below(tx, key(owner, ""))
	for _, r := range own {
		sorted = append(sorted, api.KeptTool{Definition: r.Tool, Owner: r.Owner, Added: r.Added})
	}
	slices.SortFunc(sorted, func(a, b api.KeptTool) int { return strings.Compare(a.Name, b.Name) })
	return sorted, err
}

// find returns a tool of a user, or one that is built in.
func find(tx *store.KernelTx, owner uint32, name string) (k api.KeptTool, err error) {
	if d, is := tools.Builtin(name); is {
		return api.KeptTool{Definition: d}, nil
	}
	r, err := rows.Get(tx, key(owner, name))
	if err != nil {
		return k, err
	}
	if r == nil {
		return k, api.Failure(api.CodeNotFound, "tool.list has those that may be called", "no tool %.64q", name)
	}
	return api.KeptTool{Definition: r.Tool, Owner: r.Owner, Added: r.Added}, nil
}

func (t *Tools) add(c *service.Call, p api.ToolAddParams) (result api.ToolResult, out service.Outcome, err error) {
	out.About = fmt.Sprintf("%.64q", p.Tool.Name)
	if err := p.Tool.Validate(); err != nil {
		return result, out, api.Failure(api.CodeParams, "", "%v", err)
	}
	if err := costs(p.Tool.Costs); err != nil {
		return result, out, err
	}
	old, err := rows.Get(c.Tx, key(c.UID, p.Tool.Name))
	if err != nil {
		return result, out, err
	}
	if old != nil {
		return result, out, api.Failure(api.CodeConflict, "clove tool rm "+p.Tool.Name, "there is a tool %s", p.Tool.Name)
	}
	r := &row{Owner: c.UID, Tool: p.Tool, Added: c.Now.UTC()}
	result.Tool = api.KeptTool{Definition: r.Tool, Owner: r.Owner, Added: r.Added}
	return result, out, rows.Put(c.Tx, r)
}

func (t *Tools) show(c *service.Call, p api.ToolShowParams) (result api.ToolResult, out service.Outcome, err error) {
	result.Tool, err = find(c.Tx, c.UID, p.Tool)
	return result, out, err
}

func (t *Tools) kept(c *service.Call, p api.ToolKeptParams) (result api.ToolKeptResult, out service.Outcome, err error) {
	sorted, err := all(c.Tx, c.UID)
	part, next := part(sorted, p.After)
	return api.ToolKeptResult{Tools: part, Next: next}, out, err
}

func (t *Tools) remove(c *service.Call, p api.ToolNameParams) (none api.Nothing, out service.Outcome, err error) {
	out.About = fmt.Sprintf("%.64q", p.Tool)
	r, err := rows.Get(c.Tx, key(c.UID, p.Tool))
	if err != nil {
		return none, out, err
	}
	if _, builtin := tools.Builtin(p.Tool); builtin {
		return none, out, api.Failure(api.CodeParams, "revoke its grants, or give none", "%s is built in", p.Tool)
	}
	if r == nil {
		return none, out, api.Failure(api.CodeNotFound, "clove tool ls", "no tool %.64q", p.Tool)
	}
	return none, out, rows.Delete(c.Tx, rows.Key(r))
}
