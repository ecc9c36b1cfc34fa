//go:build root

package runc

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"clove.run/clove/internal/doctest"
)

// difference is an intended one. Both patterns match normalised lines.
type difference struct {
	what, why    string // docs/oci.md has the same rows
	ours, theirs *regexp.Regexp
}

// differences are all allowed differences between clove-oci and runc in these tests.
var differences = []difference{
	meant("what `clove-oci create` says when there is no socket for its pidfd", "runc's words have a slip, which is not repeated",
		`RUNTIME \w+ failed: dial unix none: `, `RUNTIME \w+ failed: failed to dail none: dial unix none: `),
	meant("and nothing is left of that container", "runc leaves its directory, and `list` complains of it",
		`^$`, `^(list -q stderr: load container ID1: container does not exist|left: drwx--x--x state/ID1)$`),
	meant("a dot in what is said of a flag that there is not", "another version of the library of flags",
		`^--flag state none output: Incorrect Usage: flag`, `^--flag state none output: Incorrect Usage\. flag`),
	meant("`--root /` is refused in the log", "runc looks at it before it has a log",
		`^--root / list (stderr|log): option --root should not be set to /$`,
		`^--root / list (stderr: level=error msg="Option --root argument should not be set to /"|log is not JSON: )`),
	meant("what `clove-oci spec` says when there is a config.json", "clove-oci's own words",
		`^spec .*: file config\.json exists: remove it first$`, `^spec .*: File config\.json exists\. Remove it first$`),
	meant("no checkpoint and restore, and `clove-oci features` says so; the two commands are refused",
		"a restored process would have been outside of its rules meanwhile",
		`^(checkpoint|restore)\b.*`, `^((checkpoint|restore)\b.*|left: drw------- checkpoint$)`),
	meant("an id that no user can have is refused", "clove-oci reads ids as such, and says how",
		`^exec --user .*: exec failed: bad [ug]id: strconv\.ParseUint: `, `^exec --user .*: exec failed: bad [ug]id: strconv\.Atoi: `),
	meant("an update keeps what it does not name", "runc forgets, for instance, the old CPU period, and the next quota alone means something else",
		`^cgroup (cpu\.cfs_period_us: 50000|cpu\.max: 30000 50000)$`, `^cgroup (cpu\.cfs_period_us: 100000|cpu\.max: 30000 100000)$`),
}

// meant returns one row: what is different and why, clove-oci's line, and runc's.
func meant(what, why, ours, theirs string) difference {
	return difference{what: what, why: why, ours: regexp.MustCompile(ours), theirs: regexp.MustCompile(theirs)}
}

// TestDifferencesAreDocumented compares the document with the table.
func TestDifferencesAreDocumented(t *testing.T) {
	rows := doctest.Rows(t, "docs/oci.md")
	for _, d := range differences {
		if !slices.ContainsFunc(rows, func(cells []string) bool { return slices.Equal(cells, []string{d.what, d.why}) }) {
			t.Errorf("docs/oci.md has no row | %s | %s |", d.what, d.why)
		}
	}
}

// unexplained returns those lines of only that no row of the table explains.
func unexplained(only []string) (rest []string) {
	for _, line := range only {
		text, ours := strings.CutPrefix(line, "clove-oci: ")
		text = strings.TrimPrefix(text, "runc:      ")
		explained := false
		for i := range differences {
			pattern := differences[i].theirs
			if ours {
				pattern = differences[i].ours
			}
			explained = explained || pattern.MatchString(text)
		}
		if !explained {
			rest = append(rest, line)
		}
	}
	return rest
}

func TestDifferIsExact(t *testing.T) {
	for _, row := range []struct{ ours, theirs, want string }{
		{"", "", ""}, {"a b", "a b", ""}, {"a b c", "a c", "clove-oci: b"},
		{"a", "b", "clove-oci: a,runc:      b"}, {"a b", "b a", "clove-oci: a,runc:      a"},
	} {
		if got := strings.Join(differ(strings.Fields(row.ours), strings.Fields(row.theirs)), ","); got != row.want {
			t.Errorf("%q and %q: %q", row.ours, row.theirs, got)
		}
	}
}
