//go:build root

package runc

import (
	"regexp"
	"strings"
	"testing"
)

// difference is one that is meant. Both patterns match what is said in shared words.
type difference struct {
	ours, theirs *regexp.Regexp // one of them may be nil: the other has no such line
	reason       string
}

// differences are all that there may be between clove-oci and runc.
var differences = []difference{
	{regexp.MustCompile(`^(create stderr:|create log:|process: stderr) RUNTIME create failed: dial unix none: `),
		regexp.MustCompile(`^(create stderr:|create log:|process: stderr) RUNTIME create failed: failed to dail none: dial unix none: `),
		"runc's own words for --pidfd-socket, with their slip, are not repeated"},
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
			explained = explained || pattern != nil && pattern.MatchString(text)
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
