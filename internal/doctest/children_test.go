package doctest

import (
	"fmt"
	"strings"
	"testing"

	"clove.run/clove/policies/compare"
)

// TestChildrenAreDocumented: docs/kernel.md says of each field of a spec what a child may have.
// Fields of one kind and meaning share a line.
func TestChildrenAreDocumented(t *testing.T) {
	var text strings.Builder
	for _, part := range []struct {
		kind   compare.Kind
		column string
	}{{compare.Compared, "a child has"}, {compare.Elsewhere, "a child has what is"}, {compare.Free, "not compared: any value allows as much"}} {
		fmt.Fprintf(&text, "| field | %s |\n|---|---|\n", part.column)
		var meanings []string
		fields := map[string][]string{}
		for _, row := range compare.Rows() {
			if row.Kind == compare.Together {
				row = rowOf(t, row)
			}
			if row.Kind != part.kind {
				continue
			}
			if fields[row.Means] == nil {
				meanings = append(meanings, row.Means)
			}
			fields[row.Means] = append(fields[row.Means], "`"+row.Field+"`")
		}
		for _, means := range meanings {
			fmt.Fprintf(&text, "| %s | %s |\n", strings.Join(fields[means], ", "), means)
		}
		text.WriteString("\n")
	}
	holdTo(t, "docs/kernel.md", "children", strings.TrimSuffix(text.String(), "\n"))
}

// rowOf is a row that is compared with another, with that one's meaning.
func rowOf(t *testing.T, row compare.Row) compare.Row {
	t.Helper()
	for _, other := range compare.Rows() {
		if row.Means == "with `"+other.Field+"`" {
			return compare.Row{Field: row.Field, Kind: other.Kind, Means: other.Means}
		}
	}
	t.Fatalf("%s is compared %s, which there is not", row.Field, row.Means)
	return row
}
