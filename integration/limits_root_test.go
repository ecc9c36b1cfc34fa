//go:build root

package integration

import (
	"os/exec"
	"strconv"
	"testing"

	"clove.run/clove/internal/testhost"
)

// python is Debian's; the first one in PATH may be another.
const python = "/usr/bin/python3"

func mib(n int) string { return strconv.Itoa(n) + "M" }

func show(n *int64) string {
	if n == nil {
		return "absent"
	}
	return strconv.FormatInt(*n, 10)
}

// rounds is how often to repeat what is fast here and slow under emulation.
func rounds(here, emulated int) int {
	if testhost.Lane() == testhost.LaneVM {
		return emulated
	}
	return here
}

// onHost runs a command outside of every sandbox, as root, and returns its output.
func onHost(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %q: %v\n%s", name, args, err, out)
	}
	return string(out)
}
