//go:build root

package integration

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/agents"
	"clove.run/clove/api/methods"
)

// spends charges a run's budget of reviews.
func (d *cloved) spends(name string, amount int64) {
	d.t.Helper()
	d.api(agents.BudgetCharge.Name, map[string]any{"run": name, "amounts": map[string]int64{"reviews": amount}}, nil)
}

// A run whose budget is spent stands still until people answer, also where cloved was killed meanwhile; its wall time stands
// still with it, and everything that shows the run says what it waits for. The control is the same run without --ask: it is
// paused, and nothing is asked.
func TestASpentBudgetIsAQuestion(t *testing.T) {
	d := newCloved(t)
	d.detach("control", "sleep 1000", "--budget=reviews=10", "--at-end=pause")
	d.spends("control", 11)
	until(t, "the control is frozen", func() bool { return d.frozen("control") })
	if out := d.ok("approvals", "list", "--json"); strings.TrimSpace(out) != "[]" {
		t.Errorf("control: %s", out)
	}
	d.detach("asks", "sleep 1000", "--budget=reviews=10", "--budget=wall_ms=10h", "--ask=budget")
	d.spends("asks", 11)
	asked := d.question(t)
	until(t, "it is frozen", func() bool { return d.frozen("asks") })
	frozen := time.Now()
	if b := asked.Budget; asked.Agent != "asks" || b == nil || b.More != 10 || b.Used != 11 || b.Granted != 10 {
		t.Errorf("%+v, %+v", asked, b)
	}
	const waits = "people are asked to let it spend more: 11 of 10 reviews are spent; a yes adds 10"
	looks := func() {
		t.Helper()
		if r := d.clove("ps"); !strings.Contains(r.stdout, "paused") || !strings.Contains(r.stderr, "asks waits: "+waits) || strings.Contains(r.stderr, "control waits") {
			t.Errorf("%s%s", r.stdout, r.stderr)
		}
		var listed []struct{ Name, Reason string }
		if err := json.Unmarshal([]byte(d.ok("ps", "--json", "--filter", "name=asks")), &listed); err != nil || len(listed) != 1 || !strings.Contains(listed[0].Reason, waits) {
			t.Errorf("%+v, %v", listed, err)
		}
		for _, verb := range []string{"show", "why"} {
			if out := d.ok(verb, "asks"); !strings.Contains(out, waits) {
				t.Errorf("%s: %s", verb, out)
			}
		}
		if out := d.ok("kernel", "summary"); !strings.Contains(strings.Join(strings.Fields(out), " "), "questions that wait 1") {
			t.Errorf("%s", out)
		}
	}
	looks()
	d.stop(unix.SIGKILL)
	d.serve()
	if again := d.question(t); again.ID != asked.ID {
		t.Errorf("behind the kill: %+v", again)
	}
	until(t, "its supervisor is back", func() bool { return d.clove("budget", "show", "asks").code == 0 })
	looks()
	until(t, "it has stood still for a while", func() bool { return time.Since(frozen) > 2*time.Second })
	stood := time.Since(frozen)
	if out := d.ok("approvals", "allow", asked.ID[:6]); !strings.Contains(out, "a yes adds reviews=10 to the budget of this run") {
		t.Errorf("%s", out)
	}
	until(t, "it goes on", func() bool { return !d.frozen("asks") })
	if r := d.clove("ps"); strings.Contains(r.stderr, "waits") {
		t.Errorf("behind the answer: %s", r.stderr)
	}
	if out := d.ok("events", "--once", "--run", "asks"); !strings.Contains(out, "asked") || !strings.Contains(out, "allowed by user 0: spend more") {
		t.Errorf("%s", out)
	}
	d.ok("stop", "asks")
	var budgets api.BudgetResult
	d.api(agents.BudgetGet.Name, map[string]any{"run": "asks"}, &budgets)
	record := d.inspect("asks").Record
	at := slices.IndexFunc(budgets.Budgets, func(b api.Budget) bool { return b.Dimension == "wall_ms" })
	if at < 0 || budgets.Budgets[at].Used == 0 || budgets.Budgets[at].Used > record.WallMS-stood.Milliseconds()+100 {
		t.Errorf("it stood still for %s of %d ms, and has used %+v", stood, record.WallMS, budgets.Budgets)
	}
	if of := record.Asked; of == nil || *of != (agent.Asked{Questions: 1, Allowed: 1}) {
		t.Errorf("%+v", of)
	}
	if out := d.ok("why", "asks"); !strings.Contains(out, "it asked people once (1 allowed)") {
		t.Errorf("%s", out)
	}
}

// A no leaves the run paused until its budget has more by hand, which ends a question that waits. In the foreground the
// question is shown, and the last line says how many there were.
func TestANoLeavesARunPausedUntilThereIsMore(t *testing.T) {
	d := newCloved(t)
	r := d.calls("--name=asks", "--budget=reviews=10", "--ask=budget")
	r.request(agents.BudgetCharge.Name, `{"amounts":{"reviews":11}}`)
	asked := d.question(t)
	until(t, "it is frozen", func() bool { return d.frozen("asks") })
	d.ok("approvals", "deny", "--reason", "enough", asked.ID)
	until(t, "nothing waits", func() bool {
		return strings.TrimSpace(d.ok("approvals", "list", "--state", "waiting", "--json")) == "[]"
	})
	if !d.frozen("asks") {
		t.Error("a no lets it go on")
	}
	raise := func(amount int64) {
		d.api(methods.BudgetRaise.Name, map[string]any{"run": "asks", "amounts": map[string]int64{"reviews": amount}}, nil)
	}
	raise(5)
	until(t, "it goes on", func() bool { return !d.frozen("asks") })
	budgetIn(t, r.answer(), "reviews")
	r.request(agents.BudgetCharge.Name, `{"amounts":{"reviews":5}}`)
	asked = d.question(t)
	raise(1)
	until(t, "it goes on", func() bool { return !d.frozen("asks") })
	if out := d.ok("approvals", "show", asked.ID); !strings.Contains(out, asked.ID+": gone") {
		t.Errorf("%s", out)
	}
	budgetIn(t, r.answer(), "reviews")
	end := r.wait()
	if end.code != 0 || !strings.Contains(end.stderr, "clove approvals allow "+asked.ID) || !strings.HasSuffix(strings.TrimSpace(end.stderr), "asked people 2 times (1 denied)") {
		t.Errorf("%d, %s", end.code, end.stderr)
	}
}

// Questions about a budget need one that pauses the run. What would ask nothing is refused, and nothing is made.
func TestQuestionsNeedABudgetThatPauses(t *testing.T) {
	d := newCloved(t)
	for flags, want := range map[string]string{
		"--ask=budget":                                    "the run has none that pauses it",
		"--ask=budget --budget=children=3":                "the run has none that pauses it",
		"--ask=budget --budget=reviews=3 --at-end=end":    "use --at-end pause, or leave --at-end out",
		"--ask=budget --budget=reviews=3 --at-end=refuse": "use --at-end pause, or leave --at-end out",
	} {
		r := d.clove(append(append([]string{"run", "-d"}, strings.Fields(flags)...), "--", "true")...)
		if r.code == 0 || !strings.Contains(r.stderr, want) {
			t.Errorf("%s: %d, %s", flags, r.code, r.stderr)
		}
	}
	if out := d.ok("ps", "-a", "-q"); out != "" {
		t.Errorf("%s", out)
	}
}
