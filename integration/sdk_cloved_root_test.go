//go:build root

package integration

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"clove.run/clove/agent"
)

// withTypeScript are the flags of a run whose agent may import the TypeScript client: its script's
// folder is the workspace.
func withTypeScript(t *testing.T, flags ...string) []string {
	t.Helper()
	folder, err := filepath.Abs("../sdk/typescript")
	if err != nil {
		t.Fatal(err)
	}
	return append([]string{"-v", folder + ":/workspace/node_modules/clove:ro"}, flags...)
}

// The examples of docs/sdk-typescript.md, each in a sandbox.
func TestTypeScriptExamples(t *testing.T) {
	h := newHost(t)
	h.agent(withTypeScript(t, "--budget", "tokens=1000", "--at-end", "refuse", exampleOf(t, "budget_agent.mjs"))).want(t, agent.StatusExited, 0,
		"chapter One took 260 tokens\nchapter Two took 240 tokens\nchapter Three took 310 tokens\nchapter Four has to wait: budget\n"+
			"warned: tokens reached 800\nused 810 of 1000 tokens\n")
	h.agent(withTypeScript(t, "--grant", "tool:fetch", exampleOf(t, "grant_agent.mjs"))).want(t, agent.StatusExited, 0,
		"tool:fetch: yes\ntool:write: no\nderived tool:fetch for 1 use\nmore than that: denied\nrevoked 1, left 1\n")
}

// drive runs an example outside of sandboxes against the daemon, and returns what it printed.
func (d *cloved) drive(dir string, env []string, program, file string) string {
	d.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience())
	defer cancel()
	cmd := exec.CommandContext(ctx, program, file)
	cmd.Dir = dir
	cmd.Env = append(append(os.Environ(), "CLOVE_SOCKET="+d.socket), env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		d.t.Errorf("%s %s: %v", program, file, err)
	}
	return string(out)
}

// Both clients start a run, execute in it, copy, and read its log and events. Neither leaves a run.
func TestClientsDriveRuns(t *testing.T) {
	d := newCloved(t)
	const driven = "driven is running\n0 ['1', '2', '3']\nlog: begun\nexited 3\nlog: begun, asked to end\nevents: started, ended\n"
	python, err := filepath.Abs("../sdk/python")
	if err != nil {
		t.Fatal(err)
	}
	if got := d.drive("/", []string{"PYTHONPATH=" + python, "PYTHONDONTWRITEBYTECODE=1"}, "python3", exampleOf(t, "drive_run.py")); got != driven {
		t.Errorf("Python printed\n%s", got)
	}
	dir := t.TempDir()
	text, err := os.ReadFile(exampleOf(t, "drive_run.mjs"))
	for _, err := range []error{
		err,
		os.WriteFile(filepath.Join(dir, "drive_run.mjs"), text, 0o644),
		os.Mkdir(filepath.Join(dir, "node_modules"), 0o755),
		os.Symlink(filepath.Join(filepath.Dir(python), "typescript"), filepath.Join(dir, "node_modules", "clove")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	const inScript = "driven is running\n0 [ '1', '2', '3' ]\nlog: begun\nexited 3\nlog: begun, asked to end\nevents: started, ended\n"
	if got := d.drive(dir, nil, "node", "drive_run.mjs"); got != inScript {
		t.Errorf("TypeScript printed\n%s", got)
	}
	if left := d.ok("ps", "-aq"); left != "" {
		t.Errorf("the clients left runs:\n%s", left)
	}
}
