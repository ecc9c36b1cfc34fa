//go:build root

package integration

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"clove.run/clove/internal/doctest"
)

// Each row of docs/kernel.md that says how another system's method is done in clove is done
// so: by the command line, by cloved's API, or inside of a sandbox.
func TestComparedRowsAreTrue(t *testing.T) {
	d := newCloved(t)
	var setUp, variable string
	for line := range strings.Lines(pageSection(t, "docs/kernel.md", "## What other systems call it")) {
		if command, found := strings.CutPrefix(line, "    sudo "); found {
			setUp += command
		}
		if strings.HasPrefix(line, "    SDK=") {
			variable = strings.TrimSpace(line) + "\n"
		}
	}
	if out, err := d.shell("set -e\n" + variable + setUp); err != nil || strings.Count(setUp, "\n") != 3 {
		t.Fatalf("%s: %v\n%s", setUp, err, out)
	}
	tests := testNames(t)
	for _, row := range doctest.ComparedRows(t) {
		var out string
		var err error
		switch row.Try.Where {
		case "outside":
			out, err = d.shell(variable + row.Try.Run)
		case "inside":
			out, err = d.shell("clove exec one -- sh -c " + quoted(row.Try.Run))
		case "api":
			var result json.RawMessage
			d.api(row.Try.Run, struct{}{}, &result)
			out = string(result)
		case "test":
			out = tests[row.Try.Run]
			row.Try.Prints = "func " + row.Try.Run + "("
		}
		if err != nil || !strings.Contains(out, row.Try.Prints) {
			t.Errorf("%s: %s: %s: %v\n%s", row.System, row.Name, row.Try.Run, err, out)
		}
	}
}

// shell runs a command line, in which clove is that of this host, in the tree's root.
func (d *cloved) shell(line string) (string, error) {
	d.t.Helper()
	return d.shellIn(doctest.Root(d.t), line)
}

func quoted(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// testNames are the tree's test files by the names of the tests in them.
func testNames(t *testing.T) map[string]string {
	t.Helper()
	root := doctest.Root(t)
	found := map[string]string{}
	for _, file := range doctest.Files(t, root, ".go") {
		if !strings.HasSuffix(file, "_test.go") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			if name, is := strings.CutPrefix(line, "func Test"); is {
				name, _, _ = strings.Cut(name, "(")
				found["Test"+name] = line
			}
		}
	}
	return found
}

// pageSection is what stands behind a line of a document.
func pageSection(t *testing.T, file, title string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(doctest.Root(t), file))
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(text), "\n"+title+"\n")
	if !found {
		t.Fatalf("%s has no %q", file, title)
	}
	return section
}
