package doctest

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// bold is one term of a manual page, man(7): between \fB and the next font.
var bold = regexp.MustCompile(`\\fB(.+?)\\f[RI]`)

// Terms returns the bold words of a hand-written manual page, in order: the commands, flags
// and variables that it explains, with dashes as a reader sees them.
func Terms(t *testing.T, file string) []string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(Root(t), file))
	if err != nil {
		t.Fatal(err)
	}
	return termsIn(string(page))
}

// termsIn is Terms of a page's text. \- is man(7)'s dash.
func termsIn(page string) []string {
	var terms []string
	for _, match := range bold.FindAllStringSubmatch(page, -1) {
		terms = append(terms, strings.ReplaceAll(match[1], `\-`, "-"))
	}
	return terms
}
