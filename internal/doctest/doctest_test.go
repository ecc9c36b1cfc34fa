package doctest

import (
	"slices"
	"testing"
)

func TestQuotedIn(t *testing.T) {
	t.Parallel()
	got := quotedIn("a.md", "Say `one` and `two words`.\n\n    a block   # why\n\n```\nfenced\n```\n1. list\n   goes on `here`\n")
	want := []Code{{"a.md", 1, "one"}, {"a.md", 1, "two words"}, {"a.md", 3, "a block   # why"}, {"a.md", 6, "fenced"}, {"a.md", 9, "here"}}
	if !slices.Equal(got, want) {
		t.Errorf("got %v", got)
	}
}

func TestFilesLeavesOutWhatIsMade(t *testing.T) {
	t.Parallel()
	root := Root(t)
	all := Files(t, root)
	for _, name := range []string{"README.md", "Makefile", "internal/doctest/doc.go"} {
		if !slices.Contains(all, name) {
			t.Errorf("%s is not among the files", name)
		}
	}
	for _, name := range Files(t, root, ".md") {
		if slices.Contains(made, name[:min(len(name), 5)]) {
			t.Errorf("%s is made, not written", name)
		}
	}
}

func TestRows(t *testing.T) {
	t.Parallel()
	rows := Rows(t, "docs/limits.md")
	if len(rows) < 10 || rows[0][0] != "flag" || len(rows[0]) != 5 {
		t.Errorf("got %v", rows)
	}
}

func TestTermsIn(t *testing.T) {
	t.Parallel()
	got := termsIn(".TP\n\\fB\\-\\-log\\fR \\fIFILE\\fR, \\fBtext\\fR|\\fBjson\\fR\nWhere\n.BR cloved (8)\n\\fBa\\-b\\fIC\\fR\n")
	if want := []string{"--log", "text", "json", "a-b"}; !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}
