package seccomp

import (
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

// Up to the bounds of filters.go, exactly the options of its two lists are refused.
func TestSetsockoptRefusesOnlyFiltersAndKeys(t *testing.T) {
	t.Parallel()
	for _, name := range []string{Standard, Strict} {
		f := compileBuiltin(t, name)
		for option := range uint32(1 << optionBits) {
			for level, refused := range map[uint64][]uint32{unix.SOL_SOCKET: socketFilters, unix.IPPROTO_TCP: tcpKeys} {
				want := "allow"
				if slices.Contains(refused, option) {
					want = "EPERM"
				}
				if got := f.run(t, call{name: "setsockopt", args: [6]uint64{3, level, uint64(option)}}); got != want {
					t.Errorf("%s: level %d, option %d: %s, want %s", name, level, option, got, want)
				}
			}
		}
		for level := range uint32(1 << levelBits) {
			c := call{name: "setsockopt", args: [6]uint64{3, uint64(level), unix.SO_ATTACH_BPF}}
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
