package sdk

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// python runs python3 in its client's folder, and returns what it printed. It writes no compiled
// files: the folder may be another user's.
func python(t *testing.T, env []string, args ...string) string {
	t.Helper()
	return program(t, "python", append(env, "PYTHONDONTWRITEBYTECODE=1"), "python3", args...)
}

// TestPython runs the tests in python/tests.
func TestPython(t *testing.T) {
	t.Parallel()
	out := python(t, nil, "-W", "error::ResourceWarning", "-m", "unittest")
	if strings.Contains(out, "Ran 0 tests") || strings.Contains(out, "skipped") {
		t.Errorf("not every test ran:\n%s", out)
	}
}

// TestPackageIsInstalledOffline: a sandbox, and many a host, reach no package index.
func TestPackageIsInstalledOffline(t *testing.T) {
	t.Parallel()
	target := t.TempDir()
	python(t, []string{"PIP_NO_INDEX=1", "PIP_DISABLE_PIP_VERSION_CHECK=1", "HOME=" + t.TempDir()}, "-m", "pip", "install", "--quiet", "--target", target, ".")
	for _, file := range []string{"clove/api.py", "clove/cloved_api.py", "clove/py.typed"} {
		if _, err := os.Stat(filepath.Join(target, file)); err != nil {
			t.Error(err)
		}
	}
	// -P and other means to leave this folder out of the path came with 3.11.
	where := python(t, []string{"PYTHONPATH=" + target}, "-c", "import os; os.chdir('/'); import sys; sys.path.remove(''); import clove; print(clove.__file__)")
	if !strings.HasPrefix(where, target) {
		t.Errorf("clove was imported from %s", where)
	}
}
