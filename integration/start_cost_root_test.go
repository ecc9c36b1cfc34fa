//go:build root

package integration

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"clove.run/clove/internal/testhost"
)

// initialisationBytes bounds what all packages together allocate before main: every launch
// pays it twice. It was 500 KB with one package's regular expressions, which took 1.7 ms. The
// bytes differ by some hundred between runs, the time by far more. 18 KB are html/template's, for
// the page of a bench.
const initialisationBytes = 264 << 10

func TestPackageInitialisationIsSmall(t *testing.T) {
	cmd := exec.Command(testhost.Binary(t, "clove"), "--version")
	cmd.Env = append(os.Environ(), "GODEBUG=inittrace=1")
	trace, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, trace)
	}
	sum, packages := 0, 0
	for line := range strings.Lines(string(trace)) {
		var name string
		var at, took float64
		var bytes int
		if n, _ := fmt.Sscanf(line, "init %s @%g ms, %g ms clock, %d bytes,", &name, &at, &took, &bytes); n == 4 {
			sum += bytes
			packages++
		}
	}
	if packages < 20 {
		t.Fatalf("only %d packages in\n%s", packages, trace)
	}
	if sum > initialisationBytes {
		t.Errorf("package initialisation allocates %d bytes, over %d: compile and build what is large when it is first used\n%s", sum, initialisationBytes, trace)
	}
	t.Logf("%d packages, %d bytes", packages, sum)
}
