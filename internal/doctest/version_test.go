package doctest

import (
	"path/filepath"
	"regexp"
	"testing"
)

// TestABuildWithoutAVersionHasANumber: engines and packages compare versions by their numbers
// (semver.org), and all programs of one build have the same version.
func TestABuildWithoutAVersionHasANumber(t *testing.T) {
	t.Parallel()
	declared := regexp.MustCompile(`(?m)^var version = "(.*)"$`)
	number := regexp.MustCompile(`^\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?$`)
	first := ""
	for _, file := range []string{"clove/version.go", "cloved/main.go", "clove-oci/main.go"} {
		match := declared.FindStringSubmatch(readTree(t, filepath.Join("cmd", file)))
		if match == nil {
			t.Errorf("cmd/%s declares no version", file)
			continue
		}
		if first == "" {
			first = match[1]
		}
		if !number.MatchString(match[1]) || match[1] != first {
			t.Errorf("cmd/%s has version %q, and the first of them %q", file, match[1], first)
		}
	}
}
