package doctest

import (
	"fmt"
	"strings"
	"testing"

	"clove.run/clove/models"
	"clove.run/clove/models/format"
)

// formatTitles are the parts of the table.
var formatTitles = []struct {
	format models.Format
	title  string
}{
	{models.OpenAIChat, "OpenAI's chat completions"},
	{models.OpenAIResponses, "OpenAI's responses"},
	{models.AnthropicMessages, "Anthropic's messages and count_tokens"},
}

// TestRefusedFieldsAreDocumented: docs/models.md has a row for each field, type of a part and
// beta that does not simply pass.
func TestRefusedFieldsAreDocumented(t *testing.T) {
	var text strings.Builder
	for _, part := range formatTitles {
		fmt.Fprintf(&text, "%s:\n\n| where | name | what | passes |\n|---|---|---|---|\n", part.title)
		rows := 0
		for _, f := range format.Fields() {
			if condition := conditionOf(f); f.Format == part.format && condition != "" {
				fmt.Fprintf(&text, "| %s | `%s` | %s | %s |\n", f.Place, f.Name, f.What, condition)
				rows++
			}
		}
		if rows < 20 {
			t.Errorf("%s has %d rows", part.title, rows)
		}
		text.WriteString("\n")
	}
	holdTo(t, "docs/models.md", "refused fields", strings.TrimSuffix(text.String(), "\n"))
}

// conditionOf says when a field passes; empty: always.
func conditionOf(f format.Field) string {
	var rights []string
	for _, need := range f.Needs {
		rights = append(rights, "`"+string(need)+"`")
	}
	with := "with " + strings.Join(rights, " and ")
	switch {
	case f.Rule == format.Refused:
		return "never"
	case f.Rule == format.Inline:
		return "as data, or " + with
	case len(rights) > 0:
		return with
	}
	return ""
}

// docs/models.md lists what passes to the provider of a subscription.
func TestDocumentsListPassedHeaders(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	text.WriteString("| `subscription` | family, formats | headers of the agent's that pass, with the most bytes | added |\n|---|---|---|---|\n")
	for _, s := range models.Subscriptions {
		var formats, passes []string
		for _, f := range s.Formats {
			formats = append(formats, "`"+string(f)+"`")
		}
		for _, h := range s.Passes {
			passes = append(passes, fmt.Sprintf("`%s` %d", h.Name, h.MaxBytes))
		}
		added := "`Authorization: Bearer`"
		if s.Beta != "" {
			added += ", `" + s.Beta + "` in `Anthropic-Beta`"
		}
		if s.Account != "" {
			added += ", `" + s.Account + "` of `account`"
		}
		fmt.Fprintf(&text, "| `%s` | `%s`: %s | %s | %s |\n", s.Client, s.Family, strings.Join(formats, ", "), strings.Join(passes, ", "), added)
	}
	holdTo(t, "docs/models.md", "passed headers", text.String())
}
