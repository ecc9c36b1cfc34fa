package main

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/agents"
	"clove.run/clove/api/methods"
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
	run := agent.Run{Owner: agent.Owner{UID: 1000}}
	run.Spec.ID, run.Spec.Name = "1111111111111111", "one"
	f.answer(methods.RunGet.Name, api.RunResult{Run: run})
	f.answer(agents.BudgetGet.Name, api.BudgetResult{Budgets: someBudgets()})
	f.answer(methods.BudgetList.Name, api.BudgetListResult{Budgets: someBudgets()})
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
	f.answer(methods.BudgetRaise.Name, api.BudgetResult{Budgets: someBudgets()})
	f.answer(methods.BudgetReset.Name, api.BudgetResult{})
	status, stdout, stderr := b.clove("budget", "raise", "one", "tokens=20k", "cost=0.50usd", "cpu_ms=90s", "write_bytes=1G", "reviews=10")
	var raised api.BudgetRaiseParams
	f.heard(methods.BudgetRaise.Name, &raised)
	want := map[string]int64{"tokens": 20000, "cost_micros": 500000, "cpu_ms": 90000, "write_bytes": 1 << 30, "reviews": 10}
	if status != 0 || stdout != "one\n" || stderr != "" || raised.Run != "one" || !maps.Equal(raised.Amounts, want) {
		t.Errorf("%d, %q, %q, %+v", status, stdout, stderr, raised)
	}
	status, stdout, _ = b.clove("budget", "reset", "one", "cost", "reviews")
	var reset api.BudgetResetParams
	f.heard(methods.BudgetReset.Name, &reset)
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
		f.answer(methods.BudgetSet.Name, api.BudgetResult{Budgets: someBudgets()})
		status, stdout, stderr := b.clove("budget", "set", "--at-end", "pause", account, "tokens=1M/month", "reviews=10")
		var set api.BudgetSetParams
		f.heard(methods.BudgetSet.Name, &set)
		if status != 0 || !strings.Contains(stdout, "tokens") || set.Account != key || set.AtEnd != "pause" || !slices.Equal(set.Limits, []string{"tokens=1M/month", "reviews=10"}) {
			t.Errorf("%s: %d, %q, %q, %+v", account, status, stdout, stderr, set)
		}
	}
}

// A reset is of an account where one is named, and of a run otherwise.
func TestBudgetResetOfAnAccount(t *testing.T) {
	own := strconv.Itoa(os.Geteuid())
	for account, key := range map[string]string{"1000": "1000", "1000/ns:acme": "1000/ns:acme", "ns:acme": own + "/ns:acme", "name:web": own + "/name:web", "1000/provider:openai": "1000/provider:openai"} {
		b := newBench(t)
		f := b.cloved()
		f.answer(methods.BudgetSet.Name, api.BudgetResult{Budgets: someBudgets()})
		status, stdout, stderr := b.clove("budget", "reset", account, "cost", "reviews")
		var set api.BudgetSetParams
		f.heard(methods.BudgetSet.Name, &set)
		if status != 0 || stdout != account+"\n" || set.Account != key || len(set.Limits) != 0 || !slices.Equal(set.Reset, []string{"cost_micros", "reviews"}) {
			t.Errorf("%s: %d, %q, %q, %+v", account, status, stdout, stderr, set)
		}
	}
	for text, run := range map[string]string{"web": "web", "1000/web": "1000/web", "1000/run:1111111111111111": "1111111111111111", "1234567890123456": "1234567890123456"} {
		b := newBench(t)
		f := b.cloved()
		f.answer(methods.BudgetReset.Name, api.BudgetResult{})
		status, _, stderr := b.clove("budget", "reset", text, "reviews")
		var reset api.BudgetResetParams
		f.heard(methods.BudgetReset.Name, &reset)
		if status != 0 || reset.Run != run {
			t.Errorf("%s: %d, %q, %+v", text, status, stderr, reset)
		}
	}
}

func TestBudgetReport(t *testing.T) {
	b := newBench(t)
	f := b.cloved()
	f.answer(methods.BudgetReport.Name, api.BudgetReportResult{Days: []api.DaySum{{Day: "2026-11-22", Owner: 1000, Dimension: "tokens", Used: 1050}, {Day: "2026-11-23", Owner: 0, Dimension: "(other)", Used: 3}}})
	for line, want := range map[string]string{
		"budget report --from 2026-11-01 --to 2026-11-23": "DAY         OWNER  DIMENSION  USED\n2026-11-22  1000   tokens     1050\n2026-11-23  0      (other)    3\n",
		"budget report --csv":                             "day,owner,dimension,used\n2026-11-22,1000,tokens,1050\n2026-11-23,0,(other),3\n",
	} {
		status, stdout, stderr := b.clove(strings.Fields(line)...)
		var asked api.BudgetReportParams
		if f.heard(methods.BudgetReport.Name, &asked); status != 0 || stdout != want || (asked.From == "2026-11-01") != (asked.To == "2026-11-23") {
			t.Errorf("%s: %d, %q, %q, %+v", line, status, stdout, stderr, asked)
		}
	}
	var days []api.DaySum
	_, stdout, _ := b.clove("budget", "report", "--json")
	if unmarshal(t, stdout, &days); len(days) != 2 || days[0].Used != 1050 {
		t.Errorf("%s", stdout)
	}
	for _, line := range []string{"budget report --json --csv", "budget report x", "budget top --csv", "budget top TOKENS"} {
		if status, stdout, _ := b.clove(strings.Fields(line)...); status == 0 || stdout != "" {
			t.Errorf("%s: %d, %q", line, status, stdout)
		}
	}
}

func TestBudgetTop(t *testing.T) {
	b := newBench(t)
	f, limit := b.cloved(), int64(100)
	f.answer(methods.BudgetTop.Name, api.BudgetTopResult{Spenders: []api.Spender{{ID: "1", Name: "worker", Owner: 1000, Namespace: "acme", Dimension: "cost_micros", LastMinute: 50, Used: 70, Granted: &limit},
		{ID: "2", Name: "other", Dimension: "tokens", LastMinute: 5, Used: 5}}})
	status, stdout, stderr := b.clove("budget", "top", "cost")
	var asked api.BudgetTopParams
	f.heard(methods.BudgetTop.Name, &asked)
	lines := strings.Split(stdout, "\n")
	if status != 0 || asked.Dimension != "cost_micros" || len(lines) != 4 || strings.Join(strings.Fields(lines[1]), " ") != "cost 0.00005usd worker 1000 acme 0.00007usd 0.0001usd" ||
		strings.Join(strings.Fields(lines[2]), " ") != "tokens 5 other 0 5 -" {
		t.Errorf("%d, %q, %q, %+v", status, stdout, stderr, asked)
	}
}

// The lines that clove prints while a run spends: the account is named where others spend from it.
func TestBudgetLines(t *testing.T) {
	own := someBudgets()[0]
	shared, at := own, time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	shared.Account, shared.Period, shared.Wanted = "1000/ns:acme", "day", 70
	b := newBench(t)
	b.backend.record = agent.Record{Status: agent.StatusExited}
	b.backend.during = func() {
		b.backend.streams.Warned(own)
		b.backend.streams.Warned(shared)
		b.backend.streams.PausedFor(own, at)
		b.backend.streams.PausedFor(shared, time.Time{})
		money, limit := own, int64(500_000)
		money.Dimension, money.Granted, money.Used, money.Wanted = "cost_micros", &limit, 470_000, 40_500
		b.backend.streams.Warned(money)
		b.backend.streams.PausedFor(money, time.Time{})
	}
	_, _, stderr := b.clove("run", "--", "true")
	const want = "clove: budget: 1050 of 1000 tokens are used\n" +
		"clove: budget: 1050 of 1000 tokens are used in 1000/ns:acme\n" +
		"clove: budget: 1050 of 1000 tokens are used; the run is paused until clove budget raise gives more; --timeout ends it at 03:04:05\n" +
		"clove: budget: 1050 of 1000 tokens are used in 1000/ns:acme, 70 more are wanted; the run is paused until clove budget set gives 1000/ns:acme more or the day ends\n" +
		"clove: budget: 0.47usd of 0.5usd are used\n" +
		"clove: budget: 0.47usd of 0.5usd are used, 0.0405usd more are wanted; the run is paused until clove budget raise gives more\n"
	if stderr != want {
		t.Errorf("%s", stderr)
	}
}

// Without cloved, a run in the foreground has nothing that outlasts it, and stands still only
// where a user sees it. The control of each line is the same one with cloved.
func TestWhatNeedsCloved(t *testing.T) {
	_, terminal := pseudoTerminal(t)
	for _, row := range []struct {
		line     string
		terminal bool
		refused  string // the flag; "": it runs
	}{
		{line: "--budget tokens=10"},
		{line: "--budget tokens=10/day", refused: "--budget"},
		{line: "--budget tokens=10 --budget reviews=10/month", terminal: true, refused: "--budget"},
		{line: "--namespace acme", refused: "--namespace"},
		{line: "--namespace acme --grant tool:fetch", terminal: true, refused: "--namespace"},
		{line: "--budget tokens=10 --at-end pause", refused: "--at-end"},
		{line: "--budget tokens=10 --at-end pause", terminal: true},
		{line: "--budget tokens=10 --at-end refuse --on-warn true --on-end true"},
	} {
		for _, cloved := range []bool{false, true} {
			b := newBench(t)
			b.backend.record = agent.Record{Status: agent.StatusExited}
			if row.terminal {
				b.in = terminal
			}
			if cloved {
				b.cloved()
			}
			status, _, stderr := b.clove(append(append([]string{"run"}, strings.Fields(row.line)...), "--", "true")...)
			refused := row.refused != "" && !cloved
			if refused != (status == agent.ExitStartFailed) || refused != (b.backend.spec == nil) || refused && (!strings.Contains(stderr, row.refused+": ") || !strings.Contains(stderr, "start cloved")) {
				t.Errorf("%s, terminal %t, cloved %t: %d, %s", row.line, row.terminal, cloved, status, stderr)
			}
		}
	}
}
