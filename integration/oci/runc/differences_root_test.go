//go:build root

package runc

import (
	"regexp"
	"strings"
	"testing"
)

// difference is one that is meant. Both patterns match what is said in shared words.
type difference struct {
	ours, theirs *regexp.Regexp
	reason       string // docs/oci.md has the same rows
}

// differences are all that there may be between clove-oci and runc.
var differences = []difference{
	meant("--pidfd-socket to nothing: runc's words, with their slip, are not repeated",
		`RUNTIME \w+ failed: dial unix none: `, `RUNTIME \w+ failed: failed to dail none: dial unix none: `),
	meant("--pidfd-socket to nothing: runc leaves the container's directory, clove-oci what it found",
		`^$`, `^(list -q stderr: load container ID1: container does not exist|left: drwx--x--x state/ID1)$`),
	meant("a flag that there is not: the two programs' libraries for flags are of different versions",
		`^--flag state none output: Incorrect Usage: flag`, `^--flag state none output: Incorrect Usage\. flag`),
	meant("--root /: clove-oci tells it to the log; runc has none yet when it looks at its flags",
		`^--root / list (stderr|log): option --root should not be set to /$`,
		`^--root / list (stderr: level=error msg="Option --root argument should not be set to /"|log is not JSON: )`),
	meant("spec where there is one: clove-oci's own words",
		`^spec .*: file config\.json exists: remove it first$`, `^spec .*: File config\.json exists\. Remove it first$`),
	meant("checkpoint and restore are refused, whatever container is meant",
		`^(checkpoint|restore)\b.*`, `^((checkpoint|restore)\b.*|left: drw------- checkpoint$)`),
	meant("exec --user: clove-oci takes no number that is no user's, and says how it reads one",
		`^exec --user .*: exec failed: bad [ug]id: strconv\.ParseUint: `, `^exec --user .*: exec failed: bad [ug]id: strconv\.Atoi: `),
}

// meant is one row: what clove-oci says, and what runc says.
func meant(reason, ours, theirs string) difference {
	return difference{ours: regexp.MustCompile(ours), theirs: regexp.MustCompile(theirs), reason: reason}
}

// unexplained gives what of only no row of the table explains.
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
