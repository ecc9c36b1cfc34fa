package host

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestParseCPUs(t *testing.T) {
	for text, want := range map[string]string{"0": "0", "0-3": "0-3", "3,1,2": "1-3", "0,2-3,5": "0,2-3,5", "1,1": "1"} {
		if got, err := ParseCPUs(text); err != nil || FormatCPUs(got) != want {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", ",", "a", "1-", "-1", "2-1", "0-65536", "1,,2", " 1", "0x1"} {
		if got, err := ParseCPUs(text); err == nil {
			t.Errorf("%q: %v", text, got)
		}
	}
}

func TestCPUListsSurviveTheRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cpus := rapid.SliceOfNDistinct(rapid.IntRange(0, 99), 1, 40, rapid.ID).Draw(t, "cpus")
		slices.Sort(cpus)
		if got, err := ParseCPUs(FormatCPUs(cpus)); err != nil || !slices.Equal(got, cpus) {
			t.Fatalf("%v became %v, %v", cpus, got, err)
		}
	})
}
