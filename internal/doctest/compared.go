package doctest

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Compared is a row of the tables in docs/kernel.md: what another agent system has, and
// what does it in clove.
type Compared struct {
	System, Name string
	Does         string // begins with "done:", "in part:" or "no"
	Try          Try    // the zero Try: nothing does it
}

// Try shows that a row is true.
type Try struct {
	Where  string // outside, inside, api or test
	Run    string // a command line, a method, or the name of a test
	Prints string // what it prints contains this
}

var tryForm = regexp.MustCompile("^(outside|inside|api|test): `([^`]+)`(?: prints `([^`]+)`)?$")

// ComparedSystems are the titles of the tables, with the number of methods of each system.
var ComparedSystems = map[string]int{"CheetahClaws": 58, "Microsoft agent_os_kernel": 20, "kernel.chat agent-os": 8, "aaOS": 10, "Clove C++": 4}

// ComparedRows reads the tables.
func ComparedRows(t *testing.T) (all []Compared) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(Root(t), "docs/kernel.md"))
	if err != nil {
		t.Fatal(err)
	}
	for system := range ComparedSystems {
		_, section, _ := strings.Cut(string(text), "\n### "+system+"\n")
		section, _, _ = strings.Cut(section, "\n### ")
		for _, line := range strings.Split(strings.TrimSpace(section), "\n")[2:] { // behind the heading and its line
			cells := strings.Split(line, "|")
			if len(cells) != 5 {
				t.Errorf("%s: %q has not three cells", system, line)
				continue
			}
			row := Compared{System: system, Name: strings.TrimSpace(cells[1]), Does: strings.TrimSpace(cells[2])}
			if form := tryForm.FindStringSubmatch(strings.TrimSpace(cells[3])); form != nil {
				row.Try = Try{form[1], form[2], form[3]}
			} else if strings.TrimSpace(cells[3]) != "" {
				t.Errorf("%s: %q cannot be tried", system, line)
			}
			all = append(all, row)
		}
	}
	return all
}
