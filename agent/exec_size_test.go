package agent

import (
	"slices"
	"strings"
	"testing"
)

// The limits are execve(2)'s to the byte: what just fits passes, and one byte more does not.
func TestCheckExecSize(t *testing.T) {
	longest := strings.Repeat("x", execStringBytes-1)
	// total is a command that counts n bytes: /p as a file name and as an argument, and the rest.
	total := func(n int) []string {
		n -= 3 + 3 + pointerBytes
		words := []string{"/p"}
		for n > 0 {
			next := min(n, 100<<10)
			if rest := n - next; rest > 0 && rest <= 1+pointerBytes {
				next -= 2 * (1 + pointerBytes)
			}
			words = append(words, strings.Repeat("x", next-1-pointerBytes))
			n -= next
		}
		return words
	}
	for what, c := range map[string]struct {
		command, env []string
		stack        uint64
		refused      string
	}{
		"the longest argument":    {[]string{"/p", longest}, nil, 8 << 20, ""},
		"a longer argument":       {[]string{"/p", longest + "x"}, nil, 8 << 20, "at most 131071 in one string"},
		"the longest variable":    {[]string{"/p"}, []string{"A=" + longest[2:]}, 8 << 20, ""},
		"a longer variable":       {[]string{"/p"}, []string{"A=" + longest}, 8 << 20, "variable A has 131073 bytes"},
		"a quarter of the stack":  {total(2 << 20), nil, 8 << 20, ""},
		"more":                    {total(2<<20 + 1), nil, 8 << 20, "have 2097153 bytes, and the kernel takes at most 2097152"},
		"the ceiling":             {total(6 << 20), nil, StackUnknown, ""},
		"above the ceiling":       {total(6<<20 + 1), nil, RlimitInfinity, "at most 6291456"},
		"the floor":               {total(128 << 10), nil, 4096, ""},
		"above the floor":         {total(128<<10 + 1), nil, 4096, "at most 131072"},
		"environment counts, too": {total(1 << 20), slices.Repeat([]string{"A=" + strings.Repeat("x", 1000)}, 1040), 8 << 20, "at most 2097152"},
	} {
		err := CheckExecSize(c.command, c.env, c.stack)
		if err == nil && c.refused != "" || err != nil && (c.refused == "" || !strings.Contains(err.Error(), c.refused)) {
			t.Errorf("%s: %v, want %q", what, err, c.refused)
		}
	}
	s := Spec{Limits: Limits{Rlimits: []Rlimit{{Name: "nofile", Soft: 7}, {Name: "stack", Soft: 5}}}}
	if own, inherited := s.Limits.StackBytes(9), (Limits{}).StackBytes(9); own != 5 || inherited != 9 {
		t.Errorf("%d, %d", own, inherited)
	}
}
