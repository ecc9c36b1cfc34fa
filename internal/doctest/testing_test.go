package doctest

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// mostInTheMachine bounds the tests of the lane v2, which has six minutes.
const mostInTheMachine = 75

// laneRow is a row of integration/lanes.txt.
type laneRow struct{ lane, folder, test, reason string }

func laneRows(t *testing.T) []laneRow {
	t.Helper()
	var rows []laneRow
	for line := range strings.Lines(readTree(t, "integration/lanes.txt")) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		fields := strings.SplitN(strings.TrimSpace(line), " ", 4)
		if len(fields) != 4 || !slices.Contains([]string{"v2", "alone", "long", "first", "host"}, fields[0]) {
			t.Errorf("integration/lanes.txt: %q is not LANE FOLDER TEST REASON", line)
			continue
		}
		rows = append(rows, laneRow{fields[0], fields[1], fields[2], fields[3]})
	}
	return rows
}

// TestTestingIsDocumented: docs/testing.md has the table of lanes and the last whole run as
// their files have them, and names every test of which `make test` runs a sample.
func TestTestingIsDocumented(t *testing.T) {
	var table strings.Builder
	table.WriteString("| lane | folder | test | reason |\n|---|---|---|---|\n")
	for _, row := range laneRows(t) {
		fmt.Fprintf(&table, "| %s | %s | %s | %s |\n", row.lane, row.folder, row.test, row.reason)
	}
	const path = "docs/testing.md"
	holdTo(t, path, "lanes", table.String())
	holdTo(t, path, "last run", "```text\n"+readTree(t, "integration/last-run.txt")+"```\n")
	document := readTree(t, path)
	for _, name := range sampled(t) {
		if !strings.Contains(document, name) {
			t.Errorf("docs/testing.md does not say what %s does less of in make test", name)
		}
	}
}

// sampled returns the functions that do less if a sample of each test is enough.
func sampled(t *testing.T) []string {
	t.Helper()
	function := regexp.MustCompile(`^func (?:\([^)]*\) )?(\w+)`)
	var names []string
	for _, file := range Files(t, Root(t), ".go") {
		if !strings.HasSuffix(file, "_test.go") || strings.HasPrefix(file, "internal/") {
			continue
		}
		name := ""
		for line := range strings.Lines(readTree(t, file)) {
			if match := function.FindStringSubmatch(line); match != nil {
				name = match[1]
			}
			if strings.Contains(line, "testing.Short()") || strings.Contains(line, "testhost.Sample(") || strings.Contains(line, "testhost.Few(") {
				names = append(names, name)
			}
		}
	}
	if len(names) == 0 {
		t.Error("control: no test has a sample")
	}
	return names
}

// TestLanesNameTests: every row names a test that exists, and the virtual machine has few.
func TestLanesNameTests(t *testing.T) {
	inTheMachine := 0
	for _, row := range laneRows(t) {
		files, _ := filepath.Glob(filepath.Join(Root(t), row.folder, "*_test.go")) // fails only for a bad pattern
		if !slices.ContainsFunc(files, func(file string) bool {
			text, _ := os.ReadFile(file) // one that cannot be read has no test
			return strings.Contains(string(text), "\nfunc "+row.test+"(t *testing.T)")
		}) {
			t.Errorf("there is no %s in %s", row.test, row.folder)
		}
		if row.lane == "v2" {
			inTheMachine++
		}
	}
	if inTheMachine == 0 || inTheMachine > mostInTheMachine {
		t.Errorf("the lane v2 has %d tests, and may have %d", inTheMachine, mostInTheMachine)
	}
}
