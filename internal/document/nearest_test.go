package document

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestNearest(t *testing.T) {
	t.Parallel()
	known := []string{"family", "groups", "key", "limits", "timeouts", "url", "users"}
	for word, want := range map[string]string{
		"famly": "family", "user": "users", "uri": "url", "limit": "limits", "time_outs": "timeouts",
		"kee": "key", "password": "", "": "", "groupings": "groups", strings.Repeat("x", 500): "",
	} {
		if got := Nearest(word, known); got != want {
			t.Errorf("%q: %q, want %q", word, got, want)
		}
	}
}

// The distance is a metric: only equal words have none, and a detour is never shorter.
func TestDistanceIsAMetric(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.StringMatching("[abc]{0,6}")
		a, b, c := word.Draw(t, "a"), word.Draw(t, "b"), word.Draw(t, "c")
		switch ab := distance(a, b); {
		case ab != distance(b, a), (ab == 0) != (a == b), ab > max(len(a), len(b)):
			t.Fatalf("%q to %q is %d", a, b, ab)
		case ab > distance(a, c)+distance(c, b):
			t.Fatalf("%q to %q is shorter by %q", a, b, c)
		}
	})
}
