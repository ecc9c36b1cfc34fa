package format

import (
	"slices"
	"strings"

	"clove.run/clove/models"
)

// Place is where in a body a row of a table applies.
type Place string

// The places.
const (
	Top    Place = "field"  // a field of the body
	Inside Place = "inside" // a name in an object below a field
	Header Place = "header" // a value of anthropic-beta, without its date; others are left out
	Type   Place = "type"   // a value of "type", also with a date behind it (web_search_20250305)
)

// Rule is what becomes of a field.
type Rule string

// The rules.
const (
	Passes  Rule = "passes"
	Inline  Rule = "data only" // passes with data in it; with a URL it needs a right
	Needed  Rule = "needs"     // needs a right, unless it is null, false or empty
	Refused Rule = "refused"
	Written Rule = "written" // clove writes it
)

// Field is a row of a table.
type Field struct {
	Format models.Format
	Place  Place
	Name   string
	What   string
	Rule   Rule
	Needs  []models.Need
}

// Fields returns the rows of all tables. The two Anthropic formats share theirs, so only
// models.AnthropicMessages has rows.
func Fields() []Field {
	var all []Field
	for _, t := range []*table{chat, responses, messages} {
		for _, part := range []struct {
			place Place
			rows  []row
		}{{Top, t.topRows}, {Inside, t.insideRows}, {Type, t.typeRows}} {
			for _, r := range part.rows {
				all = append(all, Field{t.format, part.place, r.name, r.what, r.rule.Rule, slices.Clone(r.rule.needs)})
			}
		}
	}
	for _, r := range betas {
		all = append(all, Field{Format: models.AnthropicMessages, Place: Header, Name: r.name, What: r.what, Rule: Passes})
	}
	return all
}

// rule is how a row is carried out.
type rule struct {
	Rule
	needs  []models.Need
	own    bool // the names inside are the agent's own
	schema bool // they are a JSON schema's
	tier   bool // its value changes the price
	bare   bool // base64 is data, too
	blob   bool // text, or base64 as the media type beside it says
}

var (
	pass   = rule{Rule: Passes}
	own    = rule{Rule: Passes, own: true}
	tier   = rule{Rule: Passes, tier: true}
	blob   = rule{Rule: Passes, blob: true}
	schema = rule{Rule: Passes, own: true, schema: true}
	base64 = rule{Rule: Inline, bare: true, needs: []models.Need{models.ProviderTools}}
	inline = rule{Rule: Inline, needs: []models.Need{models.ProviderTools}}
	tools  = rule{Rule: Needed, needs: []models.Need{models.ProviderTools}}
	state  = rule{Rule: Needed, needs: []models.Need{models.ProviderState}}
	both   = rule{Rule: Needed, needs: []models.Need{models.ProviderTools, models.ProviderState}}
	refuse = rule{Rule: Refused}
	write  = rule{Rule: Written}
)

type row struct {
	name string
	what string
	rule rule
}

// table is what a format's fields mean.
type table struct {
	format                        models.Format
	topRows, insideRows, typeRows []row
	top, inside, types            map[string]rule
	folded                        map[string]string // the names of top and inside, by their folded form
}

func newTable(f models.Format, top, inside, types []row) *table {
	t := &table{format: f, topRows: top, insideRows: inside, typeRows: types, folded: map[string]string{}}
	t.top, t.inside, t.types = index(top), index(inside), index(types)
	for _, r := range slices.Concat(top, inside) {
		t.folded[fold(r.name)] = r.name
	}
	return t
}

func index(rows []row) map[string]rule {
	m := make(map[string]rule, len(rows))
	for _, r := range rows {
		m[r.name] = r.rule
	}
	return m
}

// miscased reports whether a name differs from that of a row only in case.
func (t *table) miscased(name string) bool {
	known, ok := t.folded[fold(name)]
	return ok && known != name
}

// byType finds the row of a "type". A date behind it does not change where a tool runs.
func (t *table) byType(name string) (rule, bool) {
	r, ok := t.types[name]
	if !ok {
		r, ok = t.types[undated(name)]
	}
	return r, ok
}

// undated cuts off _20250305 and _2025_03_11.
func undated(name string) string {
	base := strings.TrimRight(name, "0123456789_")
	if rest := name[len(base):]; strings.HasPrefix(rest, "_") && len(strings.ReplaceAll(rest, "_", "")) == len("20250305") {
		return base
	}
	// A name of its own may end in digits before the date: tool_search_tool_bm25_20251119.
	if cut := strings.LastIndexByte(name, '_'); cut >= 0 && len(name)-cut-1 == len("20250305") && strings.Trim(name[cut+1:], "0123456789") == "" {
		return name[:cut]
	}
	return name
}

func tableOf(f models.Format) *table {
	switch f {
	case models.OpenAIChat:
		return chat
	case models.OpenAIResponses:
		return responses
	case models.AnthropicMessages, models.AnthropicCount:
		return messages
	}
	return nil
}
