package seccomp

import (
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

// Below the bounds of filters.go, the four options and nothing else are refused.
func TestSetsockoptRefusesOnlySocketFilters(t *testing.T) {
	t.Parallel()
	for _, name := range []string{Standard, Strict} {
		f := compileBuiltin(t, name)
		for option := range uint32(1 << optionBits) {
			want := "allow"
			if slices.Contains(socketFilters, option) {
				want = "EPERM"
			}
			if got := f.run(t, call{name: "setsockopt", args: [6]uint64{3, unix.SOL_SOCKET, uint64(option)}}); got != want {
				t.Errorf("%s: option %d: %s, want %s", name, option, got, want)
			}
		}
		for level := range uint32(1 << levelBits) {
			c := call{name: "setsockopt", args: [6]uint64{3, uint64(level), unix.SO_ATTACH_FILTER}}
			if got := f.run(t, c); (got == "allow") != (level != unix.SOL_SOCKET) {
				t.Errorf("%s: level %d: %s", name, level, got)
			}
		}
	}
}

func TestPrctlRefusesOnlyFilters(t *testing.T) {
	t.Parallel()
	f := compileBuiltin(t, Standard)
	for option := range uint32(1 << optionBits) {
		want := "allow"
		if option == unix.PR_SET_SECCOMP {
			want = "EINVAL"
		}
		if got := f.run(t, call{name: "prctl", args: [6]uint64{uint64(option)}}); got != want {
			t.Errorf("option %d: %s, want %s", option, got, want)
		}
	}
}
