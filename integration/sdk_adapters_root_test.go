//go:build root

package integration

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// python runs one of the Python client's test modules against the daemon. Each leaves no run
// behind.
func (d *cloved) python(module string) {
	d.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 4*patience())
	defer cancel()
	cmd := exec.CommandContext(ctx, "python3", "-W", "error::ResourceWarning", "-m", "unittest", "-v", module)
	cmd.Dir = "../sdk/python"
	cmd.Env = append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1", "CLOVE_COMMAND="+filepath.Join(d.bin, "clove"),
		"CLOVE_ROOT="+d.state, "CLOVE_RUN_DIR="+d.run, "CLOVE_SOCKET="+d.socket)
	out, err := cmd.CombinedOutput()
	if text := string(out); err != nil || strings.Contains(text, "Ran 0 tests") || strings.Contains(text, "skipped") {
		d.t.Errorf("%s: %v\n%s", module, err, text)
	}
	if left := d.ok("ps", "-aq"); left != "" {
		d.t.Errorf("%s left runs:\n%s", module, left)
	}
}

// The Inspect provider drives sandboxes of a daemon, under a stand-in for Inspect.
func TestPythonInspectProvider(t *testing.T) { newCloved(t).python("tests.with_inspect") }

// The Harbor environment drives sandboxes of a daemon, under a stand-in for Harbor.
func TestPythonHarborEnvironment(t *testing.T) { newCloved(t).python("tests.with_harbor") }

// A sandbox ends with the Python process that started it, however that ends.
func TestPythonOwner(t *testing.T) { newCloved(t).python("tests.with_owner") }
