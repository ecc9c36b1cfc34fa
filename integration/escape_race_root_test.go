//go:build root

package integration

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"clove.run/clove/agent"
)

// swapping exchanges two names in a folder until the test ends.
func swapping(t *testing.T, program, folder, one, other string) {
	t.Helper()
	cmd := exec.Command(program, "swap", folder, one, other, "600")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
}

// raceTries is how often a race is run. The control must lose at least once in controlTries;
// otherwise the exchange is not fast enough to show anything. One try takes microseconds, and
// on a busy machine most tries see no exchange.
const (
	raceTries    = 15
	controlTries = 5_000_000
)

// TestApplyLosesNoRace: a user who may write beside the workspace keeps exchanging one of its
// folders with a link to the outside.
func TestApplyLosesNoRace(t *testing.T) {
	h := newHost(t)
	workspace, victim := t.TempDir(), t.TempDir()
	for _, dir := range []string{"dir", "other"} {
		if err := os.Mkdir(filepath.Join(workspace, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	r := h.clove("run", "--name=race", "--user=root", "--workspace", workspace, "--", "sh", "-c",
		"for d in dir other; do echo evil > /workspace/$d/evil; done")
	if r.code != 0 {
		t.Fatalf("exit %d\n%s", r.code, r.stderr)
	}
	link := filepath.Join(workspace, "link")
	if err := os.Symlink(victim, link); err != nil {
		t.Fatal(err)
	}
	swapping(t, probeProgram(t), workspace, "dir", "link")

	// Control: a program that first checks and then writes, writes into the victim.
	lost := false
	for range controlTries {
		path := filepath.Join(workspace, "dir")
		if info, err := os.Lstat(path); err != nil || !info.IsDir() {
			continue
		}
		if os.WriteFile(filepath.Join(path, "control"), nil, 0o600) == nil && os.Remove(filepath.Join(victim, "control")) == nil {
			lost = true
			break
		}
	}
	if !lost {
		t.Fatalf("control: %d tries of a naive writer lost no race", controlTries)
	}
	wrote := 0
	for range raceTries {
		if r := h.clove("apply", "--yes", "race"); r.code == 0 {
			wrote++
		}
		os.Remove(filepath.Join(workspace, "other", "evil"))
		if _, err := os.Lstat(filepath.Join(victim, "evil")); err == nil {
			t.Fatal("apply wrote through the link")
		}
	}
	t.Logf("%d of %d applies found nothing in their way", wrote, raceTries)
	h.clove("rm", "race")
}

// TestApplyWaitsForTheEnd: a running agent could change the layer while it is read.
func TestApplyWaitsForTheEnd(t *testing.T) {
	h := newHost(t)
	workspace := t.TempDir()
	cmd := h.command(t.Context(), "run", "--name=busy", "--workspace", workspace, "--", "sh", "-c", "echo x > /workspace/x; echo ready; read end")
	stdin, _ := cmd.StdinPipe()   // both fail only if they
	stdout, _ := cmd.StdoutPipe() // are set already
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := bufio.NewReader(stdout).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	h.inspectRunning("busy")
	for _, command := range []string{"apply", "diff", "rm"} {
		args := []string{command, "busy"}
		if command == "apply" {
			args = []string{command, "--yes", "busy"}
		}
		if r := h.clove(args...); r.code == 0 || !strings.Contains(r.stderr, "busy is running") {
			t.Errorf("%s of a running agent: exit %d, %q", command, r.code, r.stderr)
		}
	}
	stdin.Close()
	cmd.Wait() // read returns 1 at the end of file
	// Control: after the end it works.
	if r := h.clove("apply", "--yes", "busy"); r.code != 0 {
		t.Errorf("exit %d\n%s", r.code, r.stderr)
	}
	if _, err := os.Stat(filepath.Join(workspace, "x")); err != nil {
		t.Error(err)
	}
	h.clove("rm", "busy")
}

// TestNoSystemDirectoryBecomesTheWorkspace: between check and use, the name is exchanged with
// a link to a directory that is refused as a workspace.
func TestNoSystemDirectoryBecomesTheWorkspace(t *testing.T) {
	h := newHost(t)
	folder := t.TempDir()
	if err := os.Mkdir(filepath.Join(folder, "ws"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc", filepath.Join(folder, "link")); err != nil {
		t.Fatal(err)
	}
	workspace := filepath.Join(folder, "ws")
	// Control: without the exchange the folder is shown.
	h.agent([]string{"--workspace", workspace}, "ls", "/workspace").want(t, agent.StatusExited, 0, "")
	swapping(t, probeProgram(t), folder, "ws", "link")
	lost := false
	for range controlTries {
		if info, err := os.Lstat(workspace); err != nil || !info.IsDir() {
			continue
		}
		if _, err := os.ReadFile(workspace + "/passwd"); err == nil {
			lost = true
			break
		}
	}
	if !lost {
		t.Fatalf("control: %d tries of a naive reader lost no race", controlTries)
	}
	shown, refused := 0, 0
	for range raceTries {
		r := h.clove("run", "--rm", "--workspace", workspace, "--", "ls", "/workspace")
		switch {
		case r.stdout != "":
			t.Fatalf("the agent sees %q", r.stdout)
		case r.code == 0:
			shown++
		default:
			refused++
		}
	}
	t.Logf("%d times the folder was shown, %d times it was refused", shown, refused)
}
