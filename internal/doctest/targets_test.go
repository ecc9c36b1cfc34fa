package doctest

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

var (
	target = regexp.MustCompile(`(?m)^([a-z][a-z0-9-]*):`)
	// called matches make at the beginning of a command.
	called = regexp.MustCompile(`(?:^|&& |; |exec |sudo )make ([a-z][a-z0-9-]*)`)
)

// targets returns the Makefile's targets.
func targets(t *testing.T, root string) map[string]bool {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, match := range target.FindAllStringSubmatch(string(text), -1) {
		found[match[1]] = true
	}
	return found
}

// TestNamedTargetsExist: also those in messages and comments of the sources that quote a call
// of make.
func TestNamedTargetsExist(t *testing.T) {
	t.Parallel()
	root := Root(t)
	known := targets(t, root)
	pieces := Quoted(t)
	for _, file := range Files(t, root, ".go", ".sh", ".py") {
		text, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range backquoted.FindAllStringSubmatch(string(text), -1) {
			pieces = append(pieces, Code{File: file, Text: match[1]})
		}
	}
	seen := 0
	for _, code := range pieces {
		for _, match := range called.FindAllStringSubmatch(code.Text, -1) {
			seen++
			if !known[match[1]] {
				t.Errorf("%s:%d: the Makefile has no target %q", code.File, code.Line, match[1])
			}
		}
	}
	if seen == 0 {
		t.Error("no document calls make")
	}
}
