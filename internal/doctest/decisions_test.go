package doctest

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const decisions = "docs/decisions"

var (
	decisionName  = regexp.MustCompile(`^([0-9]{2})-[a-z0-9-]+\.md$`)
	decisionTitle = regexp.MustCompile(`^# ([0-9]+)\. (.+)\n`)
	heading       = regexp.MustCompile(`(?m)^## (.+)$`)
	// mentioned matches a decision's number in a document or in a comment.
	mentioned = regexp.MustCompile(`(?i)\bdecision\s+([0-9]+)\b`)
)

// TestDecisionsHaveOneForm: numbers without a gap, a title, four headings, and a line in the
// index.
func TestDecisionsHaveOneForm(t *testing.T) {
	entries, err := os.ReadDir(filepath.Join(Root(t), decisions))
	if err != nil {
		t.Fatal(err)
	}
	var index strings.Builder
	next := 1
	for _, entry := range entries {
		if entry.Name() == "README.md" {
			continue
		}
		text := readTree(t, filepath.Join(decisions, entry.Name()))
		name, title := decisionName.FindStringSubmatch(entry.Name()), decisionTitle.FindStringSubmatch(text)
		if name == nil || title == nil || name[1] != fmt.Sprintf("%02d", next) || title[1] != strconv.Itoa(next) {
			t.Fatalf("%s is not decision %d by name and title", entry.Name(), next)
		}
		var headings []string
		for _, match := range heading.FindAllStringSubmatch(text, -1) {
			headings = append(headings, match[1])
		}
		if !slices.Equal(headings, []string{"Context", "Decision", "Why", "Consequences"}) {
			t.Errorf("%s has the headings %q", entry.Name(), headings)
		}
		fmt.Fprintf(&index, "%d. [%s](%s)\n", next, title[2], entry.Name())
		next++
	}
	holdTo(t, filepath.Join(decisions, "README.md"), "decisions", index.String())
}

// TestMentionedDecisionsExist: if a document or a comment names a decision's number, that
// decision exists.
func TestMentionedDecisionsExist(t *testing.T) {
	t.Parallel()
	root := Root(t)
	seen := 0
	for _, file := range Files(t, root, ".md", ".go", ".sh") {
		for _, match := range mentioned.FindAllStringSubmatch(readTree(t, file), -1) {
			seen++
			number, _ := strconv.Atoi(match[1]) // digits
			pages, err := filepath.Glob(filepath.Join(root, decisions, fmt.Sprintf("%02d-*.md", number)))
			if err != nil || len(pages) != 1 {
				t.Errorf("%s names decision %d, of which there are %d: %v", file, number, len(pages), err)
			}
		}
	}
	if seen == 0 {
		t.Error("control: nothing names a decision")
	}
}
