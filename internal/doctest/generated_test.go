package doctest

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the generated parts of the documents again")

// holdTo compares the text between a document's marks of this name with text, and with -update
// writes it there. Its callers are not parallel, because other tests read the document.
func holdTo(t *testing.T, document, name, text string) {
	t.Helper()
	old := readTree(t, document)
	begin, end := "<!-- generated: "+name+" -->\n", "<!-- end -->"
	before, rest, found := strings.Cut(old, begin)
	_, after, closed := strings.Cut(rest, end)
	if !found || !closed {
		t.Fatalf("%s has no marks of %s", document, name)
	}
	want := before + begin + text + end + after
	if !*update {
		if old != want {
			t.Errorf("%s is not current in %s: go test ./internal/doctest -run %s -update", document, name, t.Name())
		}
		return
	}
	if err := os.WriteFile(filepath.Join(Root(t), document), []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
}
