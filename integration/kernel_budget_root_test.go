//go:build root

package integration

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/agents"
	"clove.run/clove/api/methods"
	"clove.run/clove/client"
)

// api calls a method as root.
func (d *cloved) api(method string, params, result any) {
	d.t.Helper()
	c, err := client.Dial(context.Background(), d.socket)
	if err != nil {
		d.t.Fatal(err)
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(context.Background(), patience())
	defer cancel()
	if err := c.Call(ctx, method, params, result); err != nil {
		d.t.Fatalf("%s: %v", method, err)
	}
}

// An agent charges 800, 150 and 100 of 1000 tokens: one warning, and then its end with all
// that it has used. cloved's ledger and that of a run of its own do the same.
func TestABudgetEndsTheRun(t *testing.T) {
	for name, newOne := range map[string]func(*testing.T) *host{
		"without cloved": newHost,
		"with cloved":    func(t *testing.T) *host { return newCloved(t).host },
	} {
		t.Run(name, func(t *testing.T) {
			h := newOne(t)
			control := h.calls("--budget=tokens=2000")
			r := h.calls("--budget=tokens=1000")
			for i, amount := range []int{800, 150, 100} {
				charge := fmt.Sprintf(`{"amounts":{"tokens":%d}}`, amount)
				if b := budgetIn(t, control.call(agents.BudgetCharge.Name, charge), "tokens"); b.Used != int64([]int{800, 950, 1050}[i]) {
					t.Errorf("%+v", b)
				}
				if r.request(agents.BudgetCharge.Name, charge); i < 2 {
					if b := budgetIn(t, r.answer(), "tokens"); !b.Warned || b.Spent {
						t.Errorf("%+v", b)
					}
				}
			}
			end := r.waitUnasked()
			hit := end.record.Limit
			if end.record.Status != agent.StatusBudget || end.code != agent.ExitKilled || hit == nil || hit.Name != "tokens" || hit.Value != 1000 || hit.Peak == nil || *hit.Peak != 1050 {
				t.Errorf("%s, exit %d, %+v\n%s", end.record.Status, end.code, hit, end.stderr)
			}
			if strings.Count(end.stderr, "800 of 1000 tokens are used") != 1 || strings.Count(end.stderr, "tokens are used") != 1 {
				t.Errorf("it was not warned once:\n%s", end.stderr)
			}
			if end := control.wait(); end.record.Status != agent.StatusExited || end.code != 0 {
				t.Errorf("control: %s, exit %d\n%s", end.record.Status, end.code, end.stderr)
			}
			if v := h.clove("audit", "verify"); v.code != 0 {
				t.Errorf("audit verify: %d\n%s%s", v.code, v.stdout, v.stderr)
			}
		})
	}
}

// waitUnasked waits for a run that ends although its input stays open.
func (r *running) waitUnasked() result {
	r.h.t.Helper()
	for {
		if _, err := r.stdout.ReadString('\n'); err != nil {
			return r.wait()
		}
	}
}

// A budget that is spent freezes the agent until someone gives more: a call that it would
// make meanwhile is answered afterwards.
func TestASpentBudgetPausesUntilItIsRaised(t *testing.T) {
	d := newCloved(t)
	r := d.calls("--name=paused", "--budget=reviews=10", "--at-end=pause")
	if d.frozen("paused") {
		t.Error("control: it is frozen before")
	}
	r.request(agents.BudgetCharge.Name, `{"amounts":{"reviews":11}}`)
	until(t, "it is frozen", func() bool { return d.frozen("paused") })
	r.request(agents.BudgetGet.Name, "{}")
	d.api(methods.BudgetRaise.Name, map[string]any{"run": "paused", "amounts": map[string]int64{"reviews": 10}}, nil)
	if b := budgetIn(t, r.answer(), "reviews"); b.Used != 11 { // of the charge
		t.Errorf("%+v", b)
	}
	if b := budgetIn(t, r.answer(), "reviews"); *b.Granted != 20 || b.Spent {
		t.Errorf("it did not stand still: %+v", b)
	}
	if end := r.wait(); end.record.Status != agent.StatusExited || end.code != 0 {
		t.Errorf("%s, exit %d\n%s", end.record.Status, end.code, end.stderr)
	}
}

// clove resume does not help a run that is paused for its budget, and the hint of clove pause
// does not name it. The control: it does after clove pause, and the budget has more.
func TestResumeDoesNotReplaceABudget(t *testing.T) {
	d := newCloved(t)
	d.detach("paused", "sleep 1000", "--budget=reviews=10", "--at-end=pause")
	params := map[string]any{"run": "paused", "amounts": map[string]int64{"reviews": 11}}
	d.api(agents.BudgetCharge.Name, params, nil)
	until(t, "it is frozen", func() bool { return d.frozen("paused") })
	for _, verb := range []string{"resume", "pause"} {
		if r := d.clove(verb, "paused"); r.code == 0 || !strings.Contains(r.stderr, "clove budget raise") || strings.Contains(r.stderr, "clove resume") || !d.frozen("paused") {
			t.Errorf("%s: %d, %s", verb, r.code, r.stderr)
		}
	}
	d.api(methods.BudgetRaise.Name, params, nil)
	until(t, "it goes on", func() bool { return !d.frozen("paused") })
	d.ok("pause", "paused")
	d.ok("resume", "paused")
	d.ok("rm", "-f", "paused")
}

// frozen reports whether all processes of a run stand still.
func (h *host) frozen(name string) bool {
	h.t.Helper()
	lease := h.inspect(name).Lease
	if lease == nil {
		return false
	}
	file, want := lease.Cgroups[""]+"/cgroup.events", "frozen 1"
	if path, v1 := lease.Cgroups["freezer"]; v1 {
		file, want = path+"/freezer.state", "FROZEN"
	}
	text, err := os.ReadFile(file)
	return err == nil && strings.Contains(string(text), want)
}

// cloved is killed in the middle of an agent's charges. Meanwhile calls are answered with
// busy; repeated with their key they count once, also those that cloved had answered.
func TestClovedKilledBetweenCharges(t *testing.T) {
	d := newCloved(t)
	r := d.calls("--name=counts", "--budget=reviews=1000")
	charge := func(i int) (used int64, busy bool) {
		m := r.call(agents.BudgetCharge.Name, fmt.Sprintf(`{"amounts":{"reviews":1},"key":"k%d"}`, i))
		if refusedWith(m, api.CodeBusy) {
			return 0, true
		}
		return budgetIn(t, m, "reviews").Used, false
	}
	const charges = 30
	for i := range charges {
		if i%10 == 5 {
			d.stop(unix.SIGKILL)
			if used, busy := charge(i); !busy {
				t.Errorf("charge %d is counted without cloved: %d", i, used)
			}
			d.serve()
		}
		until(t, "cloved is back for the agent", func() bool {
			used, busy := charge(i)
			if !busy && used != int64(i+1) {
				t.Fatalf("charge %d: %d are used", i, used)
			}
			return !busy
		})
	}
	for i := range charges {
		if used, busy := charge(i); busy || used != int64(i+1) {
			t.Errorf("charge %d again: %d, busy %t", i, used, busy)
		}
	}
	if b := budgetIn(t, r.call(agents.BudgetGet.Name, "{}"), "reviews"); b.Used != charges || b.Reserved != 0 {
		t.Errorf("%+v", b)
	}
	r.wait()
	if v := d.clove("audit", "verify"); v.code != 0 {
		t.Errorf("audit verify: %d\n%s%s", v.code, v.stdout, v.stderr)
	}
}
