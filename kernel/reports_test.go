package kernel

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/agents"
	"clove.run/clove/api/methods"
	"clove.run/clove/kernel/budget"
)

// report is what a user sees of the daily sums.
func (r *rig) report(uid uint32, p api.BudgetReportParams) string {
	r.t.Helper()
	answer, err := r.ReportBudgets(uid, p)
	must(r.t, err)
	var all []string
	for _, s := range answer.Days {
		all = append(all, fmt.Sprint(s.Day[5:], " ", s.Owner, " ", s.Dimension, " ", s.Used))
	}
	return strings.Join(all, ", ")
}

// All spending is in the sum of its day, with the change: charges, settlements, counters of
// the Linux kernel, and amounts that count as used after a crash. A repetition, a
// refusal, a raise and a reset are not.
func TestDailySumsHaveAllSpending(t *testing.T) {
	t.Parallel()
	r := newRig(t, agent.Kernel{Budgets: []string{"reviews=100", "cpu_ms=1000"}, AtEnd: "refuse"})
	r.charge("reviews", 5)
	for range 2 {
		_, err := r.asAgent(agents.BudgetCharge.Name, `{"amounts":{"reviews":1},"key":"k"}`)
		must(t, err)
	}
	wantCode(t, r.tryReserve(1000), api.CodeBudget)
	_, err := r.asAgent(agents.BudgetSettle.Name, api.BudgetSettleParams{Reservation: r.reserve("reviews", 20), Amounts: map[string]int64{"reviews": 7}})
	must(t, err)
	must(t, r.Meter(r.run, 1, map[string]int64{"cpu_ms": 30}))
	must(t, r.Meter(r.run, 1, map[string]int64{"cpu_ms": 30}))
	must(t, r.admin(methods.BudgetReset.Name, `{"dimensions":["reviews"]}`))
	must(t, r.admin(methods.BudgetRaise.Name, `{"amounts":{"reviews":9}}`))
	if got := r.report(0, api.BudgetReportParams{}); got != "01-15 1000 cpu_ms 30, 01-15 1000 reviews 13" {
		t.Errorf("on the first day: %s", got)
	}
	r.reserve("reviews", 40)
	r.clock.Add(24 * 3600)
	r.attach(true)
	r.clock.Add(-24 * 3600)
	r.charge("reviews", 1)
	if got := r.report(1000, api.BudgetReportParams{From: "2027-01-15", To: "2027-01-16"}); got != "01-15 1000 cpu_ms 30, 01-15 1000 reviews 14, 01-16 1000 reviews 40" {
		t.Errorf("after a crash on the next: %s", got)
	}
	if got := r.report(1001, api.BudgetReportParams{}); got != "" {
		t.Errorf("another user sees %s", got)
	}
	for _, day := range []string{"yesterday", "2027-02-30", "2027-1-1"} {
		_, err := r.ReportBudgets(0, api.BudgetReportParams{From: day})
		wantCode(t, err, api.CodeParams)
	}
}

// top is the answer of budget.top for a user.
func (r *rig) top(uid uint32, p api.BudgetTopParams) string {
	r.t.Helper()
	answer, err := r.TopBudgets(uid, p)
	must(r.t, err)
	var all []string
	for _, s := range answer.Spenders {
		granted := int64(-1)
		if s.Granted != nil {
			granted = *s.Granted
		}
		all = append(all, fmt.Sprint(s.Dimension, " ", s.Owner, " ", s.LastMinute, " of ", s.Used, " of ", granted))
	}
	return strings.Join(all, ", ")
}

// The run that spent most in the last minute comes first, by dimension; a user sees its own runs.
func TestWhoSpendsMost(t *testing.T) {
	t.Parallel()
	first := newRig(t, agent.Kernel{Budgets: []string{"reviews=1000"}, Namespace: "acme"})
	second, other := first.beside(newRun(1000, agent.Kernel{Socket: true})), first.beside(newRun(1001, agent.Kernel{Budgets: []string{"reviews=10000"}}))
	second.attach(true)
	other.attach(true)
	first.charge("reviews", 500)
	first.clock.Add(50)
	second.charge("tokens", 7)
	other.charge("reviews", 60)
	first.charge("reviews", 10)
	if got := first.LastMinute(first.run.Spec.ID); !maps.Equal(got, budget.Amounts{"reviews": 510}) {
		t.Errorf("%v", got)
	}
	for uid, want := range map[uint32]string{
		0:    "reviews 1000 510 of 510 of 1000, reviews 1001 60 of 60 of 10000, tokens 1000 7 of 7 of -1",
		1000: "reviews 1000 510 of 510 of 1000, tokens 1000 7 of 7 of -1",
		1001: "reviews 1001 60 of 60 of 10000",
		1002: "",
	} {
		if got := first.top(uid, api.BudgetTopParams{}); got != want {
			t.Errorf("user %d sees %s, want %s", uid, got, want)
		}
	}
	first.clock.Add(20)
	if got := first.top(0, api.BudgetTopParams{Dimension: "reviews", Limit: 1}); got != "reviews 1001 60 of 60 of 10000" {
		t.Errorf("20 s later: %s", got)
	}
	first.clock.Add(-1000) // the clock is set back, and what was counted stays
	if got := first.top(0, api.BudgetTopParams{Dimension: "tokens"}); got != "tokens 1000 7 of 7 of -1" {
		t.Errorf("earlier: %s", got)
	}
	must(t, second.Happened(second.event(agent.RunEnded), ""))
	first.clock.Add(1000)
	if got := first.top(0, api.BudgetTopParams{}); got != "reviews 1001 60 of 60 of 10000, reviews 1000 10 of 510 of 1000" {
		t.Errorf("after the end of one: %s", got)
	}
	first.clock.Add(60)
	if got := first.top(0, api.BudgetTopParams{}); got != "" {
		t.Errorf("a minute later: %s", got)
	}
	if got := first.LastMinute(first.run.Spec.ID); len(got) != 0 {
		t.Errorf("a minute later: %v", got)
	}
	_, err := first.TopBudgets(0, api.BudgetTopParams{Limit: 101})
	wantCode(t, err, api.CodeParams)
}
