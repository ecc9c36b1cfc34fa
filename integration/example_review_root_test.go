//go:build root

package integration

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"clove.run/clove/api"
	"clove.run/clove/api/agents"
)

// The example of a review runs as it is written: three children read, and one writes. A repository with one
// folder more than children fit is the control of its budget.
func TestExampleReview(t *testing.T) {
	d := newCloved(t)
	want := "part0: exited 0\npart1: exited 0\npart2: exited 0\nreport: exited 0\n" +
		"code: 1 files, 6 lines, 1 to do\n  code/sums.py:6\ndocs: 1 files, 3 lines, 0 to do\ntests: 1 files, 4 lines, 1 to do\n  tests/check.py:4\n"
	if out := d.ok("run", "--name", "review", "../examples/review/review.yaml"); out != want {
		t.Errorf("%q", out)
	}
	var tree api.ChildListResult
	d.api(agents.AgentTree.Name, map[string]any{"run": "review"}, &tree)
	var manifests []string
	for _, child := range tree.Children {
		manifests = append(manifests, child.Manifest)
	}
	if got := strings.Join(manifests, " "); got != "part part part report" {
		t.Errorf("the children are %q", got)
	}

	copied := userDir(t, nil)
	if out, err := exec.Command("cp", "-r", "../examples/review/.", copied).CombinedOutput(); err != nil {
		t.Fatalf("%s", out)
	}
	if err := os.Mkdir(filepath.Join(copied, "repository", "more"), 0o755); err != nil {
		t.Fatal(err)
	}
	r := d.clove("run", "--rm", filepath.Join(copied, "review.yaml"))
	if r.code == 0 || !strings.Contains(r.stderr, "agent.spawn: ") || !strings.Contains(r.stderr, "children") {
		t.Errorf("a fourth reader at once: %d, %q, %q", r.code, r.stdout, r.stderr)
	}
}
