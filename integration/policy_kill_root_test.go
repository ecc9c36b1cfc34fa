//go:build root

package integration

import (
	"encoding/json"
	"strings"
	"testing"

	"clove.run/clove/agent"
)

// The signal POLICY ends a run at once, with its status and the reason in the record and in the audit
// log, and its restart policy rests. The controls: KILL, which says killed, and a run that is left alone.
func TestTheSignalPolicy(t *testing.T) {
	d := newCloved(t)
	for _, name := range []string{"bad", "silent", "killed", "left"} {
		d.detach(name, "trap '' TERM; sleep 1000", "--restart=always")
	}
	d.ok("kill", "-s", "POLICY", "--reason", "it read what it should not", "bad")
	d.ok("kill", "-s", "policy", "silent")
	d.ok("kill", "killed")
	record := func(name string) *agent.Record {
		if r := d.clove("wait", name); r.code != agent.ExitKilled {
			t.Errorf("%s: clove wait exits with %d", name, r.code)
		}
		var run agent.Run
		if err := json.Unmarshal([]byte(d.ok("inspect", name)), &run); err != nil || run.Record == nil {
			t.Fatalf("%s: %v, %+v", name, err, run)
		}
		return run.Record
	}
	for name, want := range map[string]string{"bad": "it read what it should not", "silent": "the signal POLICY of uid 0"} {
		r := record(name)
		if r.Status != agent.StatusPolicyKill || r.ExitCode != agent.ExitKilled || r.Signal == nil || *r.Signal != "SIGKILL" || r.Error == nil ||
			r.Error.Step != "policy" || !strings.HasPrefix(r.Error.Message, want) || r.Stopped == nil {
			t.Errorf("%s: %+v", name, r)
		}
		if text := d.ok("why", name); !strings.Contains(text, want) {
			t.Errorf("clove why: %s", text)
		}
	}
	if r := record("killed"); r.Status != agent.StatusKilled || r.Error != nil {
		t.Errorf("control: %+v", r)
	}
	if text := d.ok("ps"); !strings.Contains(text, "left") || strings.Contains(text, "bad") {
		t.Errorf("what lives:\n%s", text)
	}
	if text := d.ok("audit", "query"); !strings.Contains(text, "signal POLICY: it read what it should not") || strings.Count(text, "signal POLICY") != 2 {
		t.Errorf("the audit log:\n%s", text)
	}
	for _, wrong := range [][]string{{"kill", "--reason", "x", "left"}, {"kill", "-s", "POLICY", "--reason", "a\nb", "left"}, {"kill", "-s", "POLICE", "left"}} {
		if r := d.clove(wrong...); r.code == 0 {
			t.Errorf("%q is accepted", wrong)
		}
	}
	d.ok("rm", "-f", "left", "bad", "silent", "killed")
}

// on_denial of a document acts as the flag, through cloved and without it. The control is the same document
// with deny.
func TestOnDenialOfADocument(t *testing.T) {
	const document = "widen: {grants: a test}\ngrants: [\"tool:fetch\"]\n"
	for name, newOne := range map[string]func(*testing.T) *host{
		"without cloved": newHost,
		"with cloved":    func(t *testing.T) *host { return newCloved(t).host },
	} {
		t.Run(name, func(t *testing.T) {
			h := newOne(t)
			control := h.calls("--policy", policyFile(t, "lenient", document+"on_denial: deny\n"))
			second := h.calls("--policy", policyFile(t, "strict", document+"on_denial: end-after:2\n"))
			for range 3 {
				refusedOnce(t, control)
			}
			refusedOnce(t, second)
			harmless(t, second)
			second.request("budget.charge", notOurs)
			if end := second.waitUnasked(); end.record.Status != agent.StatusPolicyKill || end.code != agent.ExitKilled || end.record.Policy.Name != "strict" {
				t.Errorf("%s, exit %d\n%s", end.record.Status, end.code, end.stderr)
			}
			if end := control.wait(); end.record.Status != agent.StatusExited || end.code != 0 {
				t.Errorf("control: %s, exit %d\n%s", end.record.Status, end.code, end.stderr)
			}
		})
	}
}
