package run

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/bench"
	"clove.run/clove/bench/grade"
	"clove.run/clove/bench/plan"
	"clove.run/clove/policies/resolve"
)

// attempt makes one result. A try that says nothing about the agent is repeated; the error
// is one of the bench itself, or of its end.
func (r *Runner) attempt(ctx context.Context, a plan.Attempt, cpus []int) (bench.Result, error) {
	for try := 1; ; try++ {
		result, err := r.try(ctx, a, cpus)
		if err != nil {
			return result, err
		}
		// An end that was asked for looks like a failure of the agent.
		if ctx.Err() != nil {
			return result, ErrStopped
		}
		if result.Tries = try; result.Outcome != bench.Infrastructure || try > r.Retries || result.Record != nil && neverStarts(*result.Record) {
			return result, nil
		}
	}
}

// try runs the agent and the grader once.
func (r *Runner) try(ctx context.Context, a plan.Attempt, cpus []int) (bench.Result, error) {
	w := r.work(a)
	result := bench.Result{Version: bench.ResultVersion, Attempt: a.ID(), Task: a.Task.Name, Agent: a.Agent.Name, Seed: a.Seed, CPUs: cpus}
	result.Times.Began = time.Now().UTC()
	defer os.RemoveAll(w.temp)
	if err := w.make(r, a); err != nil {
		return result, err
	}
	r.runAgent(ctx, a, w, cpus, &result)
	if result.Outcome == bench.Infrastructure {
		return result, nil
	}
	if result.Outcome == "" {
		if err := r.grade(ctx, a, w, cpus, &result); err != nil {
			return result, err
		}
	}
	result.Metrics.Completed, result.Metrics.Score = result.Outcome == bench.Passed, result.Score
	var err error
	result.Files.SHA256, err = w.sums()
	return result, err
}

// runAgent sets an outcome if there is nothing to grade.
func (r *Runner) runAgent(ctx context.Context, a plan.Attempt, w work, cpus []int, result *bench.Result) {
	began, started := time.Now(), time.Time{}
	out := Output{Layer: r.layerOf(a), Started: func() { started = time.Now() }}
	record, spec, err := r.sandbox(ctx, r.ofAgent(a, w, cpus), out, filepath.Join(w.output(), "stdout"), filepath.Join(w.output(), "stderr"))
	if err != nil {
		result.Outcome, result.Cause = bench.Infrastructure, err.Error()
		return
	}
	result.Record = &record
	defer r.Sandboxes.Remove(context.WithoutCancel(ctx), spec.ID) // what is left, clove gc removes
	if !started.IsZero() {
		result.Times.SetupMS = float64(started.Sub(began).Microseconds()) / 1000
	}
	result.Times.AgentMS = float64(record.WallMS)
	measure(result)
	if why := infrastructure(record); why != "" {
		result.Outcome, result.Cause = bench.Infrastructure, why
		return
	}
	ended := time.Now()
	if err := r.keep(ctx, a, w, spec, result); err != nil {
		result.Outcome, result.Cause = bench.Failed, cause(record, "its files cannot be kept: "+err.Error())
		if ofHost(err) {
			result.Outcome = bench.Infrastructure
		}
	}
	result.Times.KeepMS = sinceMS(ended)
}

// keep brings the agent's changes into the workspace on the host, and packs that. The agent
// can make this fail, with a tree that is too deep or a file that is one large hole: then it
// has failed.
func (r *Runner) keep(ctx context.Context, a plan.Attempt, w work, spec agent.Spec, result *bench.Result) error {
	if e, _ := r.Suite.FindEnvironment(a.Task.Environment); e.Kept() {
		_, err := r.Sandboxes.KeepLayer(ctx, spec.ID, w.layer())
		return err
	}
	changes, err := r.Sandboxes.Collect(ctx, spec.ID, spec.Limits.DiskBytes)
	if err != nil {
		return err
	}
	text, err := json.Marshal(append([]agent.Change{}, changes...))
	if err == nil {
		err = os.WriteFile(filepath.Join(w.dir, ChangesFile), append(text, '\n'), 0o644)
	}
	if err != nil {
		return err
	}
	result.Files.Changed = len(changes)
	for _, c := range changes {
		if c.Refused != "" {
			result.Files.Refused++
		}
	}
	if err := takeMetrics(w.workspace(), &result.Metrics); err != nil {
		return err
	}
	return w.pack()
}

// grade runs the grader in a sandbox of its own.
func (r *Runner) grade(ctx context.Context, a plan.Attempt, w work, cpus []int, result *bench.Result) error {
	began := time.Now()
	defer func() { result.Times.GradeMS = sinceMS(began) }()
	g := a.Task.Grade
	found := &bench.Grade{Checks: grade.Expect(g.Expect, grade.Tree{Workspace: w.workspace(), Output: w.output()})}
	score, why := 1.0, ""
	if len(g.Command) > 0 {
		ran, err := r.runGrader(ctx, a, w, cpus)
		switch {
		case err != nil:
			return err
		case ran.byAgent:
			score, why = 0, "grader: what the agent left keeps it from starting: "+ran.failure
		case ran.failure != "":
			result.Outcome, result.Cause = bench.Infrastructure, "grader: "+ran.failure
			return nil
		default:
			score, why = grade.Score(g, *ran.record, ran.stdout)
		}
		found.Record = ran.record
	}
	found.Score, why = grade.Sum(g, found.Checks, score, why)
	result.Grade, result.Score = found, found.Score
	result.Outcome = bench.Failed
	if grade.Passes(g, found.Score) {
		result.Outcome = bench.Passed
	}
	result.Cause = cause(*result.Record, why)
	return nil
}

// layerOf is what an attempt begins with; empty: nothing was set up, or no root is kept.
func (r *Runner) layerOf(a plan.Attempt) string { return r.prepared[a.Task.Environment].layer }

// sandbox builds the spec and runs it to its end, with two files as the streams of out.
func (r *Runner) sandbox(ctx context.Context, q resolve.Request, out Output, stdout, stderr string) (agent.Record, agent.Spec, error) {
	spec, err := resolve.Spec(q, r.Host, agent.NewID())
	if err != nil {
		return agent.Record{}, spec, err
	}
	files, err := newOutputs(stdout, stderr)
	if err != nil {
		return agent.Record{}, spec, err
	}
	defer files.close()
	out.Stdout, out.Stderr = files.stdout, files.stderr
	record, err := r.Sandboxes.Run(ctx, spec, out)
	return record, spec, err
}
