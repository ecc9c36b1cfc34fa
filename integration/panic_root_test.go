//go:build root

package integration

import (
	"strings"
	"testing"

	"clove.run/clove/agent"
)

// clove panic ends agents that ignore every signal, detached or not, with its reason in
// their records, and nothing starts until it is cleared. The control is the agent that
// beats before, and the run that starts behind.
func TestPanicEndsAllAndNothingStarts(t *testing.T) {
	d := newCloved(t)
	d.detach("there", "trap '' TERM; while :; do sleep 0.1; done")
	life := newLifeline(t)
	r := d.keep("here", []string{"--seccomp=unconfined", life.flag()}, "sh", "-c", stubborn)
	r.ready()
	life.beats()
	said := d.ok("panic", "a leak")
	for _, name := range []string{"here", "there"} {
		if !strings.Contains(said, name) {
			t.Errorf("%s is not named: %q", name, said)
		}
	}
	if ended := r.wait(); ended.code != agent.ExitKilled {
		t.Errorf("it ends with %d: %s", ended.code, ended.stderr)
	}
	d.clove("wait", "there")
	for _, name := range []string{"here", "there"} {
		record := d.inspect(name).Record
		if record == nil || record.Status != agent.StatusPolicyKill || record.Error == nil || record.Error.Message != "a leak" {
			t.Errorf("%s: %+v", name, record)
		}
	}
	refused := d.clove("run", "--rm", "--", "true")
	if refused.code != agent.ExitStartFailed || !strings.Contains(refused.stderr, "a leak") || !strings.Contains(refused.stderr, "clove panic --clear") {
		t.Errorf("a run starts: %d, %s", refused.code, refused.stderr)
	}
	waits := d.clove("run", "-d", "--name", "waits", "--", "true")
	if ps := d.ok("ps"); waits.code != 0 || !strings.Contains(waits.stderr, "a leak") || !strings.Contains(waits.stderr, "clove panic --clear") || !strings.Contains(ps, "queued") {
		t.Errorf("a detached run: %d, %s\n%s", waits.code, waits.stderr, ps)
	}
	d.ok("panic", "--clear")
	d.ok("wait", "waits")
	if r := d.clove("run", "--rm", "--", "true"); r.code != 0 {
		t.Error(r.stderr)
	}
	log := d.ok("audit", "query", "--kind", "panic", "--json")
	if strings.Count(log, "\n") != 2 || !strings.Contains(log, `"what":"a leak"`) || !strings.Contains(log, `"count":2`) {
		t.Errorf("the audit log: %s", log)
	}
	d.ok("audit", "verify")
}

// Without cloved, panic does the same.
func TestPanicWithoutCloved(t *testing.T) {
	h := newHost(t)
	life := newLifeline(t)
	r := h.keep("here", []string{"--seccomp=unconfined", life.flag()}, "sh", "-c", stubborn)
	r.ready()
	life.beats()
	if p := h.clove("panic", "a leak"); p.code != 0 || !strings.Contains(p.stdout, "here") {
		t.Errorf("%d, %q, %s", p.code, p.stdout, p.stderr)
	}
	r.wait()
	if record := h.inspect("here").Record; record == nil || record.Status != agent.StatusPolicyKill {
		t.Errorf("%+v", record)
	}
	if refused := h.clove("run", "--rm", "--", "true"); refused.code != agent.ExitStartFailed {
		t.Errorf("a run starts: %d, %s", refused.code, refused.stderr)
	}
	if p := h.clove("panic", "--clear"); p.code != 0 {
		t.Error(p.stderr)
	}
	if again := h.clove("run", "--rm", "--", "true"); again.code != 0 {
		t.Error(again.stderr)
	}
}
