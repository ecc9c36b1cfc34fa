package format

import (
	"fmt"
	"slices"
	"strings"

	"clove.run/clove/models"
)

// check goes through a body with the table of its format.
type check struct {
	*document
	table *table
	needs []models.Need
	tiers []string
	media media
}

// fields checks the whole body.
func (c *check) fields() *Refusal {
	var unknown []string
	for i := range c.children(0) {
		r, ok := c.table.top[c.name(i)]
		if !ok {
			if bad := c.unknown(i, &unknown); bad != nil {
				return bad
			}
			continue
		}
		if bad := c.apply(0, i, r, false); bad != nil {
			return bad
		}
	}
	return nil
}

// apply carries out a row. Granted says that a row above needs provider-tools: the names
// and types there are then open, as the provider's tools are what the right is for.
func (c *check) apply(parent, i int32, r rule, granted bool) *Refusal {
	switch {
	case c.empty(i):
		return nil
	case r.Rule == Refused:
		return c.refuse(i, "%s is not supported", short(c.name(i)))
	case r.Rule == Inline:
		return c.inline(i, r, granted)
	}
	c.need(r.needs)
	granted = granted || slices.Contains(r.needs, models.ProviderTools)
	if r.tier {
		c.tiers = append(c.tiers, c.name(i)+"="+short(c.str(i)))
	}
	if r.blob {
		c.blob(parent, i)
	}
	if r.own {
		c.own(i, r)
		return nil
	}
	return c.walk(i, granted)
}

// empty reports whether a value asks for nothing.
func (c *check) empty(i int32) bool {
	n := &c.nodes[i]
	return n.kind == null || n.kind == array && n.next == i+1 || n.kind == boolean && c.document.body[n.from] == 'f'
}

func (c *check) need(needs []models.Need) {
	for _, n := range needs {
		if !slices.Contains(c.needs, n) {
			c.needs = append(c.needs, n)
		}
	}
}

// walk checks the objects in a value.
func (c *check) walk(i int32, granted bool) *Refusal {
	switch c.nodes[i].kind {
	case array:
		for child := range c.children(i) {
			if bad := c.walk(child, granted); bad != nil {
				return bad
			}
		}
	case object:
		return c.object(i, granted)
	}
	return nil
}

func (c *check) object(i int32, granted bool) *Refusal {
	kind, bad := c.kindOf(i, &granted)
	if bad != nil {
		return bad
	}
	if c.table == responses {
		c.stored(i, kind)
	}
	var unknown []string
	for child := range c.children(i) {
		r, ok := c.table.inside[c.name(child)]
		switch {
		case ok:
			bad = c.apply(i, child, r, granted)
		case granted && !c.table.miscased(c.name(child)):
			bad = c.walk(child, true)
		default:
			bad = c.unknown(child, &unknown)
		}
		if bad != nil {
			return bad
		}
	}
	return nil
}

// kindOf looks an object's type up.
func (c *check) kindOf(i int32, granted *bool) (string, *Refusal) {
	at, ok := c.member(i, "type")
	if !ok || c.nodes[at].kind == null {
		return "", nil
	}
	if c.nodes[at].kind != text {
		return "", c.refuse(at, "not a string")
	}
	kind := c.str(at)
	r, ok := c.table.byType(kind)
	if ok && r.Rule == Refused || !ok && !*granted {
		return "", c.refuse(at, "the type %q is not supported", short(kind))
	}
	c.need(r.needs)
	*granted = *granted || slices.Contains(r.needs, models.ProviderTools)
	return kind, nil
}

// stored finds items of OpenAI's responses that the provider looks up by their id: those
// with neither type nor role, and reasoning without its content.
func (c *check) stored(i int32, kind string) {
	alone := kind == "" && !c.filled(i, "role") || kind == "reasoning" && !c.filled(i, "encrypted_content") && !c.filled(i, "content")
	if alone && c.filled(i, "id") {
		c.need(state.needs)
	}
}

func (c *check) filled(i int32, name string) bool {
	at, ok := c.member(i, name)
	return ok && !c.empty(at) && (c.nodes[at].kind != text || len(c.raw(at)) > len(`""`))
}

// own looks at a value whose names are the agent's own. Some servers load a schema that
// another refers to.
func (c *check) own(i int32, r rule) {
	if !r.schema {
		return
	}
	for at := i + 1; at < c.nodes[i].next; at++ {
		n := &c.nodes[at]
		if n.kind != text || n.keyEnd == 0 {
			continue
		}
		if name := c.name(at); (name == "$ref" || name == "$dynamicRef") && !strings.HasPrefix(c.str(at), "#") {
			c.need(inline.needs)
		}
	}
}

func (c *check) refuse(i int32, format string, args ...any) *Refusal {
	param := c.path(i)
	return &Refusal{Cause: Invalid, Param: param, Message: param + ": " + fmt.Sprintf(format, args...), Hint: "see docs/models.md for the fields that pass"}
}
