package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/agents"
	"clove.run/clove/api/methods"
)

// Each run is behind its parent, one level deeper, and is there once: also one whose parent is not listed,
// one that is listed twice, and those of a circle.
func TestTreeOf(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"a b:a c:b d:a e": "a 0,b 1,c 2,d 1,e 0",
		"c:b b:a a":       "a 0,b 1,c 2",
		"b:gone c:b":      "b 0,c 1",
		"a a b:a":         "a 0,b 1",
		"a:a b:a":         "a 0,b 1",
		"a:b b:a c:b":     "a 0,b 1,c 2",
		"a:b b:c c:a d":   "d 0,a 0,c 1,b 2",
		"":                "",
	} {
		var ids, parents []agent.ID
		for _, field := range strings.Fields(text) {
			id, parent, _ := strings.Cut(field, ":")
			ids, parents = append(ids, agent.ID(id)), append(parents, agent.ID(parent))
		}
		var got []string
		for _, b := range treeOf(len(ids), func(i int) agent.ID { return ids[i] }, func(i int) agent.ID { return parents[i] }) {
			got = append(got, fmt.Sprint(ids[b.at], " ", b.depth))
		}
		if strings.Join(got, ",") != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
		if slices.Sort(got); len(slices.Compact(got)) != len(got) {
			t.Errorf("%q: a run is there twice: %q", text, got)
		}
	}
}

// With --tree each run is below its parent, and a parent's line has the sums; without it they are as cloved lists them.
func TestStatsAsATree(t *testing.T) {
	b := newBench(t)
	b.families()
	const want = `ID        NAME            CPU    MEMORY  LIMIT  PIDS  NET IN  NET OUT  DISK  RAN
776f726b  work            5.0%   10MiB   64MiB  2     1KiB    0B       1MiB  2s
616c6f6e  alone           5.0%   10MiB   64MiB  2     1KiB    0B       1MiB  2s
6c656164  lead            15.0%  30MiB   64MiB  6     3KiB    0B       3MiB  2s
6368696c    child         10.0%  20MiB   64MiB  4     2KiB    0B       2MiB  2s
6772616e      grandchild  5.0%   10MiB   64MiB  2     1KiB    0B       1MiB  2s
6f727068  orphan          5.0%   10MiB   64MiB  2     1KiB    0B       1MiB  2s
706c616e  plan            10.0%  20MiB   64MiB  -     2KiB    0B       2MiB  2s
68656c70    helper        5.0%   10MiB   64MiB  -     1KiB    0B       1MiB  2s
`
	status, stdout, stderr := b.clove("stats", "--once", "--tree")
	if status != 0 || stderr != "" || stdout != want {
		t.Errorf("%d, %s\ngot\n%s\nwant\n%s", status, stderr, stdout, want)
	}
	_, stdout, _ = b.clove("stats", "--once")
	lines := strings.Split(stdout, "\n")
	if !strings.Contains(lines[1], " grandchild  5.0%  10MiB ") || !strings.Contains(lines[5], " lead        5.0%  10MiB ") {
		t.Errorf("control:\n%s", stdout)
	}
}

// ps --tree puts runs behind their parents, also those that have ended; a parent that is not listed leaves its child without indentation.
func TestPsAsATree(t *testing.T) {
	b := newBench(t)
	b.families()
	status, stdout, stderr := b.clove("ps", "--tree")
	var names []string
	for line := range strings.Lines(stdout) {
		names = append(names, strings.TrimRight(line[10:22], " "))
	}
	const want = "NAME,work,alone,lead,  child,    grandchi,orphan,plan,  helper"
	if got := strings.Join(names, ","); status != 0 || stderr != "" || got != want {
		t.Errorf("%d, %s\n%s\n%s", status, stderr, got, stdout)
	}
	for _, flag := range []string{"-q", "--format={{.ID}}"} {
		if status, stdout, stderr := b.clove("ps", "--tree", flag); status != exitFailed || stdout != "" || !strings.Contains(stderr, "hint: omit one of them") {
			t.Errorf("%s: %d, %s, %s", flag, status, stdout, stderr)
		}
	}
}

// The accounts of runs above are a tree, for which the run is looked up; of a run without one, and as JSON, it is not.
func TestBudgetShowAsATree(t *testing.T) {
	b := newBench(t)
	f := b.families()
	line := func(name, dimension string) api.Budget {
		return api.Budget{Account: "0/run:" + string(idOf(name)), Dimension: dimension, Granted: new(int64(9)), Used: 2}
	}
	f.answer(agents.BudgetGet.Name, api.BudgetResult{Budgets: []api.Budget{line("lead", "calls")}})
	status, stdout, stderr := b.clove("budget", "show", string(idOf("lead")))
	if status != 0 || stderr != "" || !strings.Contains(stdout, "\n0/run:"+string(idOf("lead"))+" ") || f.calls(methods.RunGet.Name) != 0 {
		t.Errorf("%d, %s, %d look-ups\n%s", status, stderr, f.calls(methods.RunGet.Name), stdout)
	}
	f.answer(agents.BudgetGet.Name, api.BudgetResult{Budgets: []api.Budget{line("grandchild", "calls"), line("child", "calls"), line("lead", "calls"), {Account: "0", Dimension: "calls"}}})
	if _, stdout, _ = b.clove("budget", "show", "--json", string(idOf("grandchild"))); strings.Count(stdout, "0/run:") != 3 || f.calls(methods.RunGet.Name) != 0 {
		t.Errorf("%d look-ups\n%s", f.calls(methods.RunGet.Name), stdout)
	}
	status, stdout, stderr = b.clove("budget", "show", string(idOf("grandchild")))
	var accounts []string
	for line := range strings.Lines(stdout) {
		account, _, _ := strings.Cut(strings.TrimLeft(line, " "), "  ")
		accounts = append(accounts, strings.Repeat(" ", len(line)-len(strings.TrimLeft(line, " ")))+account)
	}
	want := []string{"ACCOUNT", "0", "  0/run:" + string(idOf("lead")) + " (lead)", "    0/run:" + string(idOf("child")) + " (child)", "      0/run:" + string(idOf("grandchild")) + " (grandchild)"}
	if status != 0 || stderr != "" || !slices.Equal(accounts, want) || f.calls(methods.RunGet.Name) != 1 {
		t.Errorf("%d, %s, %d look-ups, %q\n%s", status, stderr, f.calls(methods.RunGet.Name), accounts, stdout)
	}
	// A run whose name has come to mean another is no reason to fail.
	f.answer(methods.RunGet.Name, api.RunResult{Run: agent.Run{Spec: agent.Spec{ID: idOf("other"), Name: "other"}, Above: []agent.Ancestor{{ID: idOf("lead"), Name: "lead"}}}})
	if status, stdout, stderr = b.clove("budget", "show", "grandchild"); status != 0 || stderr != "" {
		t.Errorf("%d, %s\n%s", status, stderr, stdout)
	}
}
