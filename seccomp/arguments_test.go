package seccomp

import (
	"slices"
	"testing"

	"github.com/opencontainers/runtime-spec/specs-go"
	"pgregory.net/rapid"
)

// matches evaluates alternatives of masked comparisons of argument 0.
func matches(alternatives [][]specs.LinuxSeccompArg, value uint64) bool {
	return slices.ContainsFunc(alternatives, func(args []specs.LinuxSeccompArg) bool {
		return value&args[0].Value == args[0].ValueTwo
	})
}

func TestExceptMatchesAllButTheExcluded(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		excluded := rapid.SliceOfN(rapid.Uint32(), 0, 4).Draw(t, "excluded")
		alternatives := except(0, excluded...)
		value := rapid.OneOf(rapid.Uint32(), near(excluded)).Draw(t, "value")
		upper := uint64(rapid.Uint32().Draw(t, "upper")) << 32
		want := !slices.Contains(excluded, value)
		if got := matches(alternatives, upper|uint64(value)); got != want {
			t.Fatalf("except %#x matches %#x: %v", excluded, upper|uint64(value), got)
		}
		if len(alternatives) > 32*max(1, len(excluded)) {
			t.Fatalf("%d alternatives for %d values", len(alternatives), len(excluded))
		}
	})
}

// near draws the excluded values and values that differ from them in one bit.
func near(values []uint32) *rapid.Generator[uint32] {
	return rapid.Custom(func(t *rapid.T) uint32 {
		value := rapid.SampledFrom(append([]uint32{0}, values...)).Draw(t, "of")
		if rapid.Bool().Draw(t, "flip") {
			value ^= 1 << rapid.IntRange(0, 31).Draw(t, "bit")
		}
		return value
	})
}

func TestExceptNothingIsOneRule(t *testing.T) {
	t.Parallel()
	if got := except(2); len(got) != 1 || got[0][0].Value != 0 || got[0][0].Index != 2 {
		t.Errorf("except nothing: %+v", got)
	}
}

func TestExceptBlocksDoNotOverlap(t *testing.T) {
	t.Parallel()
	// Two adjacent values share all but one bit, so they cost 31 blocks.
	if got := len(except(0, 6, 7)); got != 31 {
		t.Errorf("except two neighbours: %d blocks, want 31", got)
	}
	if got := len(except(0, 6)); got != 32 {
		t.Errorf("except one value: %d blocks, want 32", got)
	}
}

func TestEqualsLooksAtTheLowHalf(t *testing.T) {
	t.Parallel()
	rule := [][]specs.LinuxSeccompArg{all(equals(0, 38))}
	for value, want := range map[uint64]bool{38: true, 38 | high: true, 39: false, 38 << 32: false} {
		if got := matches(rule, value); got != want {
			t.Errorf("%#x: %v", value, got)
		}
	}
}
