//go:build root

package integration

import (
	"os"
	"path/filepath"
	"testing"

	"clove.run/clove/agent"
)

// TestNoSetUserIDFileOnTheHost: a file that the agent writes through -v belongs to the
// directory's owner. The control is the agent's own layer, where the bit can be set and has no
// effect.
func TestNoSetUserIDFileOnTheHost(t *testing.T) {
	h := newHost(t)
	data := t.TempDir()
	for _, user := range []string{"agent", "root"} {
		flags := []string{"--user", user, "-v", data + ":/data"}
		const script = `cp /bin/true $0/t && chmod 4755 $0/t 2>/dev/null; stat -c %a $0/t; rm $0/t`
		h.agent(flags, "sh", "-c", script, "/data").want(t, agent.StatusExited, 0, "755\n")
		h.agent([]string{"--user", user}, "sh", "-c", script, "/tmp").want(t, agent.StatusExited, 0, "4755\n")
	}
}

// TestRootInsideCannotKeepTheBitOfAHostProgram: the kernel clears the bit at the first write,
// unless the writer has CAP_FSETID over the file.
func TestRootInsideCannotKeepTheBitOfAHostProgram(t *testing.T) {
	h := newHost(t)
	program := filepath.Join(t.TempDir(), "program")
	prepare := func(path string) {
		if err := os.WriteFile(path, []byte("old"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, 0o755|os.ModeSetuid); err != nil {
			t.Fatal(err)
		}
	}
	prepare(program)
	// Control: root of the host, which has FSETID, keeps the bit.
	if err := os.WriteFile(program, []byte("new"), 0); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(program); err != nil || info.Mode()&os.ModeSetuid == 0 {
		t.Fatalf("control: %v, %v", info.Mode(), err)
	}
	prepare(program)
	r := h.agent([]string{"--user", "root", "-v", filepath.Dir(program) + ":/data"}, "sh", "-c", "echo evil > /data/program")
	r.want(t, agent.StatusExited, 0, "")
	if info, err := os.Stat(program); err != nil || info.Mode()&os.ModeSetuid != 0 {
		t.Errorf("the agent's program has mode %v, %v", info.Mode(), err)
	}
}
