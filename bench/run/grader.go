package run

import (
	"cmp"
	"context"
	"path/filepath"

	"clove.run/clove/agent"
	"clove.run/clove/bench/plan"
)

// AttemptRoot is where a grader with a root of its own finds the one that the agent left.
const AttemptRoot = "/attempt/root"

// graderMost bounds what is read of a grader's stdout for its score.
const graderMost = 64 << 10

// graded is how a grader ended.
type graded struct {
	record  *agent.Record // nil: nothing ran
	stdout  string
	failure string // why it says nothing; empty: it does
	byAgent bool   // what the agent left keeps it from starting
}

// started reports whether the grader's program was executed.
func (g graded) started() bool { return g.record != nil && g.record.Status != agent.StatusStartFailed }

// runGrader tries a grader that did not run again, as the attempt itself is over. Where one
// works on the root that the agent left, a start of it on the task's own root decides: if that
// works and it fails on the agent's a second time, the failure is the agent's.
func (r *Runner) runGrader(ctx context.Context, a plan.Attempt, w work, cpus []int) (g graded, err error) {
	e, _ := r.Suite.FindEnvironment(a.Task.Environment)
	for try, blamed := 0, 0; ; try++ {
		if g, err = r.gradeOnce(ctx, a, w, cpus); err != nil || g.failure == "" {
			return g, err
		}
		switch {
		case e.Kept() && !g.started() && ctx.Err() == nil && r.startsWithoutAgent(ctx, a, w, cpus):
			if blamed++; blamed == 2 {
				g.byAgent = true
				return g, nil
			}
		case try >= r.Retries || ctx.Err() != nil || g.record != nil && neverStarts(*g.record):
			return g, nil
		}
	}
}

func (r *Runner) gradeOnce(ctx context.Context, a plan.Attempt, w work, cpus []int) (g graded, err error) {
	if err := w.freshGrader(r, a); err != nil {
		return g, err
	}
	out := filepath.Join(w.temp, "score")
	record, _, err := r.sandbox(ctx, r.ofGrader(a, w, cpus), r.onRoots(a, cmp.Or(existing(w.layer()), r.layerOf(a))), out, w.log)
	if err != nil {
		return graded{failure: err.Error()}, nil
	}
	g = graded{record: &record, failure: infrastructure(record)}
	if g.failure == "" {
		g.stdout, err = readBounded(out, graderMost)
	}
	return g, err
}

// onRoots is what a grader begins with: the agent's root, or its own beside that one.
func (r *Runner) onRoots(a plan.Attempt, left string) Output {
	if e, _ := r.Suite.FindEnvironment(a.Task.Environment); a.Task.Grade.OwnRoot(e) {
		return Output{Layer: r.layerOf(a), Shown: &left}
	}
	return Output{Layer: left}
}

// startsWithoutAgent is the control: the same start with the task's own root in the place of
// the agent's, ended as soon as the grader's program is executed.
func (r *Runner) startsWithoutAgent(ctx context.Context, a plan.Attempt, w work, cpus []int) (starts bool) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	if err := w.freshGrader(r, a); err != nil {
		return false
	}
	out := r.onRoots(a, r.layerOf(a))
	out.Started = func() { starts = true; stop() }
	name := filepath.Join(w.temp, "control")
	_, _, _ = r.sandbox(ctx, r.ofGrader(a, w, cpus), out, name+".out", name+".err") // whether it started is all that counts
	return starts
}
