package main

import (
	"strings"
	"testing"
	"time"

	"clove.run/clove/agent"
)

// The whole story of an end: what it exited with, its terms, the person who stopped it and when,
// its restarts, the end of its log, and what to do.
func TestStory(t *testing.T) {
	at := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	gaveUp := endedRun(agent.Record{Status: agent.StatusExited, ExitCode: 3})
	gaveUp.Spec.Detached, gaveUp.Spec.Restart = true, agent.Restart{Policy: agent.RestartOnFailure, Max: 2}
	gaveUp.Queue = agent.QueueState{Restarts: 2, GivenUp: true}
	stopped := endedRun(agent.Record{Status: agent.StatusSignaled, ExitCode: 143, Stopped: &agent.Stopped{By: "uid 1000, process 7", Time: at}})
	stopped.Spec.Limits.WallClock = time.Minute
	stopped.Layer = "/image"
	stopped.Spec.Policy = agent.Policy{Name: agent.PolicyCustom, Claimed: "web"}
	waits := endedRun(agent.Record{})
	waits.State, waits.Record, waits.Spec.Restart.Policy, waits.Queue.NotBefore = agent.StateQueued, nil, agent.RestartAlways, at
	spentRun := endedRun(agent.Record{Status: agent.StatusBudget, Limit: &agent.LimitHit{Name: "cost_micros", Value: 500_000, Used: 470_000, Wanted: 40_500}})
	spentRun.Spec.Detached = true
	for _, row := range []struct {
		run  agent.Run
		want []string
	}{
		{gaveUp, []string{"exit: 3 (exited)", "restarts: 2 in a row, by --restart on-failure:2; it gave up", "log: last\x1b", "next: clove logs web has the rest of its log; clove restart web"}},
		{stopped, []string{"exit: 143 (signaled)", "stopped: by uid 1000, process 7, at 2026-11-27T12:00:00Z", "timeout 1m0s", "policy: custom, claimed to be web", "next: clove diff web"}},
		{waits, []string{"restarts: 0 in a row, by --restart always; the next at 2026-11-27T12:00:00Z", "next: clove ps -a says what it waits for"}},
		{endedRun(agent.Record{Status: agent.StatusStartFailed}), []string{"next: change what the error names"}},
		{spentRun, []string{"next: clove budget raise web cost=0.5usd, then clove restart web goes on with its files"}},
		{endedRun(agent.Record{Status: agent.StatusOOM, Limit: &agent.LimitHit{}}), []string{"next: run it again with the flags that clove why web names"}},
	} {
		var text strings.Builder
		for _, f := range story(row.run, []string{"last\x1b"}) {
			text.WriteString(f.Name + ": " + f.Value + "\n")
		}
		for _, want := range row.want {
			if !strings.Contains(text.String(), want) {
				t.Errorf("without %q:\n%s", want, text.String())
			}
		}
	}
	// On the screen nothing of a log moves the cursor.
	b := newBench(t)
	b.backend.runs = []agent.Run{gaveUp}
	if _, stdout, _ := b.clove("why", "run", "web"); !strings.Contains(stdout, "it gave up\n") {
		t.Errorf("%s", stdout)
	}
}
