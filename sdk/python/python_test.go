package python

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// python runs python3 in this folder, and returns what it printed. It writes no compiled
// files: the folder may be another user's.
func python(t *testing.T, env []string, args ...string) string {
	t.Helper()
	cmd := exec.Command("python3", args...)
	cmd.Env = append(append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1"), env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("python3 %v: %v\n%s", args, err, out)
	}
	return string(out)
}

// TestPython runs the tests in tests/.
func TestPython(t *testing.T) {
	t.Parallel()
	out := python(t, nil, "-W", "error::ResourceWarning", "-m", "unittest")
	if strings.Contains(out, "Ran 0 tests") || strings.Contains(out, "skipped") {
		t.Errorf("not every test ran:\n%s", out)
	}
}
