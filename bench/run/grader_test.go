package run

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"clove.run/clove/agent"
	"clove.run/clove/bench"
	"clove.run/clove/bench/suite"
)

// graders is a Sandboxes in which graders end as one of two functions says: on the root that an
// agent left, and on the task's own. The number counts from 1.
type graders struct {
	ended
	onAgents, onOwn func(number int) agent.Record
	agents, owns    int
}

func (g *graders) Run(_ context.Context, _ agent.Spec, out Output) (record agent.Record, err error) {
	switch {
	case strings.HasSuffix(out.Layer, LayerFile) || out.Shown != nil && strings.HasSuffix(*out.Shown, LayerFile):
		g.agents++
		record = g.onAgents(g.agents)
	default:
		g.owns++
		record = g.onOwn(g.owns)
	}
	if record.Status != agent.StatusStartFailed && out.Started != nil {
		out.Started()
	}
	return record, nil
}

// A grader that does not start is the agent's doing only if it starts on the task's own root,
// and fails on the agent's again. Otherwise it says nothing about the agent.
func TestWhoKeepsAGraderFromStarting(t *testing.T) {
	t.Parallel()
	fails := func(step string) func(int) agent.Record {
		return func(int) agent.Record {
			return agent.Record{Status: agent.StatusStartFailed, Error: &agent.Failure{Step: step, Message: "failed"}}
		}
	}
	starts := func(int) agent.Record { return agent.Record{Status: agent.StatusExited} }
	once := func(number int) agent.Record {
		if number == 1 {
			return fails("rootfs")(1)
		}
		return starts(number)
	}
	killed := func(int) agent.Record { return agent.Record{Status: agent.StatusKilled} }
	for name, c := range map[string]struct {
		onAgents, onOwn func(int) agent.Record
		outcome         bench.Outcome
		cause           string
		tries           int // on the agent's root
	}{
		"both start":         {starts, starts, bench.Passed, "", 1},
		"the agent's fails":  {fails("look up"), starts, bench.Failed, "grader: what the agent left keeps it from starting: start failed: look up: failed", 2},
		"both fail":          {fails("rootfs"), fails("rootfs"), bench.Infrastructure, "grader: start failed: rootfs: failed", 3},
		"none has a program": {fails("look up"), fails("look up"), bench.Infrastructure, "grader: start failed: look up: failed", 1},
		"it failed once":     {once, starts, bench.Passed, "", 2},
		"it was killed":      {killed, starts, bench.Infrastructure, "grader: killed", 3},
	} {
		for _, root := range []string{suite.RootKept, suite.RootOwn} {
			with := &graders{onAgents: c.onAgents, onOwn: c.onOwn}
			r, a := oneAttempt(t, &with.ended)
			r.Sandboxes = with
			r.Suite.Environments = []suite.Environment{{Name: "e", Root: suite.RootKept}}
			a.Task.Environment, a.Task.Grade.Root = "e", root
			w := r.work(a)
			if err := errors.Join(w.make(r, a), os.WriteFile(w.layer(), nil, 0o600)); err != nil {
				t.Fatal(err)
			}
			r.prepared = map[string]prepared{"e": {layer: "own"}}
			result := bench.Result{Record: &agent.Record{Status: agent.StatusExited}}
			if err := r.grade(t.Context(), a, w, []int{0}, &result); err != nil {
				t.Fatal(err)
			}
			if result.Outcome != c.outcome || !strings.HasPrefix(result.Cause, c.cause) || with.agents != c.tries {
				t.Errorf("%s, root: %s: %s (%s) after %d tries and %d controls", name, root, result.Outcome, result.Cause, with.agents, with.owns)
			}
		}
	}
}
