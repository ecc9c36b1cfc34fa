//go:build root

package integration

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	moby "github.com/moby/profiles/seccomp"

	"clove.run/clove/agent"
	"clove.run/clove/integration/probe"
)

// dockersProfile writes docker's default profile as a file.
func dockersProfile(t *testing.T) string {
	t.Helper()
	text, err := json.Marshal(moby.DefaultProfile())
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "docker.json")
	if err := os.WriteFile(path, text, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// widerThanStandard are the attacks that docker's filter lets through to the kernel: more
// kernel code can be reached, but no escape is known.
var widerThanStandard = map[string]bool{
	"kernel aio": true, "kernel huge-file": true, "kernel huge-pages": true, "kernel memfd_secret": true,
	"kernel modify_ldt": true, "abi int80": true,
}

// TestDockersProfileHolds: with --seccomp FILE, docker's filter applies with everything else
// that clove sets up.
func TestDockersProfileHolds(t *testing.T) {
	h := newHost(t)
	program, profile := probeProgram(t), dockersProfile(t)
	var commands []probe.Command
	for _, c := range probe.Commands("1", "/tmp") {
		if !slices.Contains([]string{"socket", "filter", "tty"}, c.Args[0]) { // docker's filter allows most of them
			commands = append(commands, c)
		}
	}
	for _, user := range []string{"agent", "root"} {
		script := probeScript(probeInside, commands) + probeInside + " socket tcp generic\n"
		r := h.agent(withProbe(program, "--seccomp", profile, "--user", user), "sh", "-c", script)
		inside := attacked(t, []byte(r.stdout))
		// Control: docker's filter is in force, not standard.
		if !inside["socket generic"].OK {
			t.Errorf("control: %s: %+v", user, inside["socket generic"])
		}
		for _, c := range commands {
			for _, a := range c.Attacks {
				if inside[a.Name].OK && !widerThanStandard[a.Name] {
					t.Errorf("%s: %s succeeds: %s", user, a.Name, inside[a.Name].Detail)
				}
			}
		}
		if r.record.Enforced[agent.ControlSeccomp] != profile || len(r.record.Unenforced) != 0 {
			t.Errorf("%s: enforced %v, unenforced %v", user, r.record.Enforced, r.record.Unenforced)
		}
	}
}
