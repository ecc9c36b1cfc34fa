//go:build root

package integration

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/api"
)

// question waits until a run has a question that waits, and returns it.
func (d *cloved) question(t *testing.T) api.Approval {
	t.Helper()
	for deadline := time.Now().Add(patience()); ; time.Sleep(10 * time.Millisecond) {
		var all []api.Approval
		if err := json.Unmarshal([]byte(d.ok("approvals", "list", "--state", "waiting", "--json")), &all); err != nil {
			t.Fatal(err)
		}
		if len(all) == 1 {
			return all[0]
		}
		if time.Now().After(deadline) {
			t.Fatalf("%+v", all)
		}
	}
}

// A connection that no rule covers waits for a person, and is made after the yes without a retry of the program, also
// where cloved was killed meanwhile. Before the yes no question for the name leaves the host. The control is the same
// without --ask: it is refused.
func TestAConnectionWaitsForAYes(t *testing.T) {
	d := newCloved(t)
	d.stop(unix.SIGTERM)
	n := newInternet(t, d.host)
	d.serve()
	const get = "curl -sS -m 60 http://api.example.com/; echo $?"
	if r := d.agent([]string{"--network", "allowlist"}, "sh", "-c", get); n.visited("tcp " + siteAddress + ":80") {
		t.Errorf("control: %s", r.stdout)
	}
	sent := n.capture(t)
	d.ok("run", "-d", "--name", "waits", "--network", "allowlist", "--ask", "net", "--", "sh", "-c", get)
	asked := d.question(t)
	if asked.What != "connect to api.example.com:80" || asked.Agent != "waits" {
		t.Errorf("%+v", asked)
	}
	d.stop(unix.SIGKILL)
	d.serve()
	if asked = d.question(t); asked.Agent != "waits" {
		t.Errorf("behind the kill: %+v", asked)
	}
	asks := func() bool {
		return slices.ContainsFunc(sent.sent(), func(p packet) bool { return strings.HasPrefix(p.String(), "udp "+resolverAddress) })
	}
	if asks() {
		t.Error("a question for the name has left before the yes")
	}
	shown := d.ok("approvals", "allow", asked.ID[:6])
	if !strings.Contains(shown, "adds the rule --allow api.example.com:80") {
		t.Errorf("%s", shown)
	}
	d.ok("wait", "waits")
	if !asks() { // the control of the capture
		t.Error("no question for the name has left behind the yes")
	}
	if out := d.ok("logs", "waits"); !strings.HasSuffix(out, "0\n") || !n.visited("tcp "+siteAddress+":80") {
		t.Errorf("%s", out)
	}
	d.ok("run", "-d", "--name", "denied", "--network", "allowlist", "--ask", "net", "--", "sh", "-c", get)
	d.ok("approvals", "deny", "--reason", "no", d.question(t).ID)
	d.ok("wait", "denied")
	if out := d.ok("logs", "denied"); !strings.Contains(out, "api.example.com is denied") {
		t.Errorf("after a no: %s", out)
	}
}
