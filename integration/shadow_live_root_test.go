//go:build root

package integration

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"clove.run/clove/agent"
)

// Exec sessions are seen, and rules that clove update changes: what the run's own rules refuse from then
// on is not counted any more.
func TestAShadowOfALiveRun(t *testing.T) {
	d, _ := newClovedWithInternet(t)
	d.detach("worker", "sleep 1000", "--policy", policyFile(t, "own", visitor), "--policy-shadow", policyFile(t, "strict", strictVisitor))
	if text := d.ok("exec", "worker", "--", "python3", "-c", visits); text != "0 0 5\n['reached', 'reached', 'reached'] reached\n" {
		t.Errorf("a session: %s", text)
	}
	d.ok("update", "worker", "--allow", "93.184.216.35:22", "--allow", "api.example.com", "--allow", "db.example.com")
	if text := d.ok("exec", "worker", "--", "python3", "-c", visits); text != "0 0 5\n['refused', 'refused', 'refused'] reached\n" {
		t.Errorf("behind the update: %s", text)
	}
	d.ok("stop", "-t", "0", "worker")
	var run agent.Run
	if err := json.Unmarshal([]byte(d.ok("inspect", "worker")), &run); err != nil || run.Record == nil || run.Record.Shadow == nil {
		t.Fatalf("%v, %+v", err, run)
	}
	got := refusedWords(run.Record.Shadow.Denials)
	if want := []string{"network dns://db.example.com db.example.com is not allowed 2", "network tcp://" + evilAddress + ":80 " + evilAddress + " is not allowed, and no allowed name led there 3"}; !slices.Equal(got, want) {
		t.Errorf("%q; want %q", got, want)
	}
}

// A member's run has its shadow as values: cloved opens no path of a member's. The control is the
// member's run without one.
func TestAShadowOfAMember(t *testing.T) {
	m := newClovedFor(t, groupName).member()
	run := func(flags ...string) result {
		return m.clove(append(append([]string{"run", "--rm"}, flags...), "--", "python3", "-c", "bytearray(300 << 20)")...)
	}
	if r := run(); r.code != 0 || strings.Contains(r.stderr, "would have") {
		t.Errorf("control: %d, %s", r.code, r.stderr)
	}
	if r := run("--policy-shadow", "minimal"); r.code != 0 || !strings.Contains(r.stderr, "policy minimal would ") || !strings.Contains(r.stderr, "not have been enough in limits.memory") {
		t.Errorf("%d, %s", r.code, r.stderr)
	}
	if r := run("--policy", "minimal"); r.code != agent.ExitKilled {
		t.Errorf("as the run's own: %d, %s", r.code, r.stderr)
	}
}
