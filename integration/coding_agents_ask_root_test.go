//go:build root

package integration

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// A coding agent whose tool connects to a host that no rule covers waits for a person, and goes on with its work.
func TestACodingAgentWaitsForAYes(t *testing.T) {
	for _, a := range codingAgents {
		if a.name == "opencode" {
			continue // its tool is that of the others
		}
		t.Run(a.name, func(t *testing.T) {
			scriptedModels(t, "agents", a.model+"-fetch")
			d, n := askingHost(t)
			d.stop(unix.SIGTERM)
			d.settings = "models: " + os.Getenv("CLOVE_MODELS") + "\n"
			d.serve()
			n.web.HandleFunc("/fix.sed", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "s/a - b/a + b/") })
			homeWith(t, a.file, a.program)
			dir := brokenProject(t)
			d.ok(append([]string{"run", "-d", "--name=coder", "--timeout=120s", "--workspace", dir, a.name, "--network=allowlist", "--ask=net", "--model=" + a.model + "-fetch", "--"}, a.task...)...)
			asked := d.question(t)
			for range 5 {
				if asked.What == "connect to api.example.com:80" {
					break
				}
				d.ok("approvals", "deny", asked.ID) // the agent's own, as for its updates
				asked = d.question(t)
			}
			if asked.What != "connect to api.example.com:80" || asked.Agent != "coder" {
				t.Errorf("%+v", asked)
			}
			d.ok("approvals", "allow", asked.ID)
			if r := d.clove("wait", "coder"); strings.TrimSpace(r.stdout) != "0" {
				t.Errorf("%s%s%s", r.stdout, r.stderr, d.ok("logs", "coder"))
			}
			d.ok("apply", "coder", "--yes")
			if !passes(dir) {
				t.Error("its work did not go on")
			}
		})
	}
}
