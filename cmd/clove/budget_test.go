package main

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"clove.run/clove/api"
)

func someBudgets() []api.Budget {
	limit, warn := int64(1000), int64(800)
	return []api.Budget{
		{Account: "1000/run:1111111111111111", Dimension: "tokens", Granted: &limit, Used: 1050, Peak: 1050, WarnAt: &warn, AtEnd: "pause", Warned: true, Spent: true},
		{Account: "1000", Dimension: "tokens", Used: 1050, Peak: 1050, Period: "day"},
	}
}

func TestBudgetShow(t *testing.T) {
	b := newBench(t)
	f := b.cloved()
	f.answer(api.MethodBudgetGet, api.BudgetResult{Budgets: someBudgets()})
	f.answer(api.MethodBudgetList, api.BudgetListResult{Budgets: someBudgets()})
	for _, line := range []string{"budget show one", "budget list", "budget list 1000"} {
		status, stdout, stderr := b.clove(strings.Fields(line)...)
		lines := strings.Split(strings.TrimSpace(stdout), "\n")
		if status != 0 || stderr != "" || len(lines) != 3 || strings.Join(strings.Fields(lines[1]), " ") != "1000/run:1111111111111111 tokens 1050 0 1000 1050 800 pause spent" ||
			strings.Join(strings.Fields(lines[2]), " ") != "1000 tokens 1050 0 - 1050 - day" {
			t.Errorf("%s: %d, %q, %s", line, status, stderr, stdout)
		}
	}
	var lines []api.Budget
	_, stdout, _ := b.clove("budget", "show", "--json", "one")
	if unmarshal(t, stdout, &lines); len(lines) != 2 || !lines[0].Spent {
		t.Errorf("%s", stdout)
	}
}

// Amounts are read as those of --budget.
func TestBudgetRaiseAndReset(t *testing.T) {
	b := newBench(t)
	f := b.cloved()
	f.answer(api.MethodBudgetRaise, api.BudgetResult{Budgets: someBudgets()})
	f.answer(api.MethodBudgetReset, api.BudgetResult{})
	status, stdout, stderr := b.clove("budget", "raise", "one", "tokens=20k", "cost=0.50usd", "cpu_ms=90s", "write_bytes=1G", "reviews=10")
	var raised api.BudgetRaiseParams
	f.heard(api.MethodBudgetRaise, &raised)
	want := map[string]int64{"tokens": 20000, "cost_micros": 500000, "cpu_ms": 90000, "write_bytes": 1 << 30, "reviews": 10}
	if status != 0 || stdout != "one\n" || stderr != "" || raised.Run != "one" || !maps.Equal(raised.Amounts, want) {
		t.Errorf("%d, %q, %q, %+v", status, stdout, stderr, raised)
	}
	status, stdout, _ = b.clove("budget", "reset", "one", "cost", "reviews")
	var reset api.BudgetResetParams
	f.heard(api.MethodBudgetReset, &reset)
	if status != 0 || stdout != "one\n" || reset.Run != "one" || !slices.Equal(reset.Dimensions, []string{"cost_micros", "reviews"}) {
		t.Errorf("%d, %q, %+v", status, stdout, reset)
	}
	var lines []api.Budget
	_, stdout, _ = b.clove("budget", "raise", "--json", "one", "reviews=1")
	if unmarshal(t, stdout, &lines); len(lines) != 2 {
		t.Errorf("%s", stdout)
	}
}

func TestBudgetSet(t *testing.T) {
	for account, key := range map[string]string{"1000": "1000", "1000/ns:acme": "1000/ns:acme", "ns:acme": fmt.Sprintf("%d/ns:acme", os.Geteuid()), "name:web": fmt.Sprintf("%d/name:web", os.Geteuid())} {
		b := newBench(t)
		f := b.cloved()
		f.answer(api.MethodBudgetSet, api.BudgetResult{Budgets: someBudgets()})
		status, stdout, stderr := b.clove("budget", "set", "--at-end", "pause", account, "tokens=1M/month", "reviews=10")
		var set api.BudgetSetParams
		f.heard(api.MethodBudgetSet, &set)
		if status != 0 || !strings.Contains(stdout, "tokens") || set.Account != key || set.AtEnd != "pause" || !slices.Equal(set.Limits, []string{"tokens=1M/month", "reviews=10"}) {
			t.Errorf("%s: %d, %q, %q, %+v", account, status, stdout, stderr, set)
		}
	}
}
