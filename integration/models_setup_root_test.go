//go:build root

package integration

import (
	"strings"
	"testing"

	"clove.run/clove/agent"
)

// The file of a client is the agent's own, in its sandbox, and stays over a restart. The
// control: without the flag there is none.
func TestModelSetupWritesTheClientsFile(t *testing.T) {
	h := newHost(t)
	const look = `cd; id -u; stat -c %u .codex/config.toml; cat .codex/config.toml; echo '# mine' >>.codex/config.toml && echo writable`
	r := h.agent([]string{"--network=none", "--model=echo", "--model-setup=codex"}, "sh", "-c", look)
	lines := strings.Split(r.stdout, "\n")
	if r.code != 0 || lines[0] != lines[1] || lines[2] != `model = "echo"` || !strings.HasSuffix(r.stdout, "writable\n") {
		t.Errorf("exit %d: %s%s", r.code, r.stdout, r.stderr)
	}
	if r := h.agent([]string{"--network=none", "--model=echo"}, "sh", "-c", "ls -A ~"); strings.Contains(r.stdout, "codex") {
		t.Errorf("control: %s", r.stdout)
	}
	mine := t.TempDir()
	r = h.agent([]string{"--network=none", "--model=echo", "--model-setup=codex", "-v=" + mine + ":/home/agent/.codex"}, "true")
	if r.code != agent.ExitStartFailed || !strings.Contains(r.stderr, "--model-setup") {
		t.Errorf("exit %d: %s", r.code, r.stderr)
	}
}

// A later start of the run finds its own file, and changes nothing in it.
func TestModelSetupStaysOverARestart(t *testing.T) {
	d := newCloved(t)
	const grow = `cd && echo '# again' >>.codex/config.toml && grep -c again .codex/config.toml`
	if r := d.clove("run", "-d", "--name=coder", "--network=none", "--model=echo", "--model-setup=codex", "--", "sh", "-c", grow); r.code != 0 {
		t.Fatal(r.stderr)
	}
	d.clove("wait", "coder")
	if r := d.clove("restart", "coder"); r.code != 0 {
		t.Fatal(r.stderr)
	}
	if r := d.clove("wait", "coder"); r.code != 0 {
		t.Errorf("exit %d: %s%s", r.code, r.stdout, r.stderr)
	}
	if r := d.clove("logs", "coder"); r.stdout != "1\n2\n" {
		t.Errorf("%q, %s", r.stdout, r.stderr)
	}
}
