package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/methods"
	"clove.run/clove/internal/rpc"
	"clove.run/clove/policies"
)

// families starts a fake cloved with live runs: a tree of three, a team of two of which one has a child, a run by itself,
// and a child whose parent is in root's foreground.
func (b *bench) families() *fakeCloved {
	f := b.cloved()
	runs := map[agent.ID]agent.Run{}
	var order []agent.ID
	for _, line := range []string{"grandchild child lead", "work", "alone", "child lead", "lead", "orphan away", "helper plan", "plan"} {
		names := strings.Fields(line)
		run := agent.Run{Spec: agent.Spec{ID: idOf(names[0]), Name: names[0], Detached: true, Command: []string{"sh"}}, State: agent.StateRunning}
		if names[0] == "work" || names[0] == "plan" {
			run.Spec.Labels, run.Spec.Kernel.Namespace = map[string]string{policies.LabelTeam: "paper"}, "paper"
		}
		for i, name := range names[1:] {
			if i == 0 {
				run.Parent = idOf(name)
			}
			run.Above = append(run.Above, agent.Ancestor{ID: idOf(name), Name: name, Namespace: map[string]string{"plan": "paper"}[name]})
		}
		runs[run.Spec.ID], order = run, append(order, run.Spec.ID)
	}
	f.answers[methods.RunList.Name] = func(*rpc.Conn, json.RawMessage) (any, error) {
		var all api.ListResult
		for _, id := range order {
			all.Runs = append(all.Runs, runs[id])
		}
		return all, nil
	}
	named := func(params json.RawMessage) agent.Run {
		var p api.RunParams
		unmarshal(b.t, string(params), &p)
		return runs[agent.ID(p.Run)]
	}
	f.answers[methods.RunGet.Name] = func(_ *rpc.Conn, params json.RawMessage) (any, error) {
		return api.RunResult{Run: named(params)}, nil
	}
	f.answers[methods.RunStats.Name] = func(_ *rpc.Conn, params json.RawMessage) (any, error) {
		s := agent.Stats{WallMS: 2000, MemoryBytes: new(int64(10 << 20)), Pids: new(int64(2)),
			Usage: agent.Usage{CPUMS: new(int64(100)), DiskBytes: new(int64(1 << 20)), NetRxBytes: new(int64(1024)), NetTxBytes: new(int64(0))}, Limits: agent.Limits{MemoryBytes: 64 << 20}}
		if named(params).Spec.Name == "helper" {
			s.Pids = nil // this host does not report it
		}
		return api.StatsResult{Stats: s}, nil
	}
	f.answer(methods.BudgetList.Name, api.BudgetListResult{Budgets: []api.Budget{
		{Account: "0/ns:paper", Dimension: "cost_micros", Granted: new(int64(500_000)), Used: 400_000, Reserved: 12_000},
		{Account: "0/run:" + string(idOf("lead")), Dimension: "children", Granted: new(int64(16)), Reserved: 2},
		{Account: "0/run:" + string(idOf("lead")), Dimension: "model_calls", Used: 3}, // nothing limits it
		{Account: "0/run:" + string(idOf("child")), Dimension: "tokens", Granted: new(int64(20_000)), Used: 5_000},
	}})
	return f
}

// idOf is the id of a run in tests, of its name.
func idOf(name string) agent.ID { return agent.ID(fmt.Sprintf("%-16.16x", name+"--------")) }

// Children are below their parents, and each family of several runs has a line with its sums and budgets.
func TestTopShowsFamilies(t *testing.T) {
	b := newBench(t)
	b.families()
	status, stdout, stderr := b.clove("top", "--once")
	const want = `ID        NAME                CPU    MEMORY       PIDS  BUDGETS
6c656164  lead                5.0%   10MiB/64MiB  2     children 2/16
6368696c    child             5.0%   10MiB/64MiB  2     tokens 5000/20000
6772616e      grandchild      5.0%   10MiB/64MiB  2
          lead: 3 runs        15.0%  30MiB/64MiB  6     children 2/16
776f726b  work                5.0%   10MiB/64MiB  2
706c616e  plan                5.0%   10MiB/64MiB  2
68656c70    helper            5.0%   10MiB/64MiB  -
          team paper: 3 runs  15.0%  30MiB        -     cost 0.412usd/0.5usd
616c6f6e  alone               5.0%   10MiB/64MiB  2
6f727068  orphan              5.0%   10MiB/64MiB  2
`
	if status != 0 || stderr != "" || stdout != want {
		t.Errorf("%d, %s\ngot\n%s\nwant\n%s", status, stderr, stdout, want)
	}
}

func TestTopAsJSON(t *testing.T) {
	b := newBench(t)
	b.families()
	status, stdout, stderr := b.clove("top", "--once", "--json")
	var got struct{ Families []family }
	unmarshal(t, stdout, &got)
	if status != 0 || stderr != "" || len(got.Families) != 4 {
		t.Fatalf("%d, %s, %s", status, stdout, stderr)
	}
	lead, team := got.Families[0], got.Families[1]
	if lead.Name != "lead" || lead.Team || len(lead.Runs) != 3 || lead.Runs[2].Parent != idOf("child") || *lead.Sum.MemoryBytes != 30<<20 || lead.Sum.Limits.MemoryBytes != 64<<20 || len(lead.Budgets) != 1 {
		t.Errorf("%+v", lead)
	}
	if team.Name != "paper" || !team.Team || team.Sum.Pids != nil || team.Sum.Limits.MemoryBytes != 0 || *team.Sum.Usage.NetRxBytes != 3072 || len(team.Budgets) != 1 || team.Budgets[0].Used != 400_000 {
		t.Errorf("%+v", team)
	}
}

// With a name, top lists processes, and takes no interval; without one and without runs it is empty.
func TestTopOfOne(t *testing.T) {
	b := newBench(t)
	f := b.families()
	f.answer(methods.RunProcesses.Name, api.ProcessesResult{Processes: []agent.Process{{PID: 1, State: "S", Command: []string{"sh"}}}})
	if status, stdout, stderr := b.clove("top", "lead"); status != 0 || stderr != "" || !strings.HasPrefix(stdout, "PID ") {
		t.Errorf("%d, %s, %s", status, stdout, stderr)
	}
	if status, stdout, stderr := b.clove("top", "--interval", "1s", "lead"); status != exitFailed || stdout != "" || !strings.Contains(stderr, "hint: omit it") {
		t.Errorf("%d, %s, %s", status, stdout, stderr)
	}
	f.answer(methods.RunList.Name, api.ListResult{Runs: []agent.Run{}})
	if status, stdout, stderr := b.clove("top", "--once"); status != 0 || stderr != "" || stdout != "ID  NAME  CPU  MEMORY  PIDS  BUDGETS\n" {
		t.Errorf("%d, %s, %s", status, stdout, stderr)
	}
	if _, stdout, _ := b.clove("top", "--once", "--json"); stdout != `{"families":[]}`+"\n" {
		t.Errorf("%s", stdout)
	}
}
