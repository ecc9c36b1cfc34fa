package run

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"clove.run/clove/agent"
	"clove.run/clove/bench/files"
	"clove.run/clove/bench/grade"
	"clove.run/clove/bench/plan"
	"clove.run/clove/bench/suite"
	"clove.run/clove/policies"
	"clove.run/clove/policies/resolve"
	"clove.run/clove/policies/settings"
)

// standard are the limits of an attempt for which the suite names none.
var standard = suite.Limits{Memory: "256M", CPUs: "1", Pids: "128", Timeout: "5m", Output: "4M", Disk: "256M"}

// over lays limits over others.
func over(l, under suite.Limits) suite.Limits {
	first := func(a, b policies.Text) policies.Text { return cmp.Or(a, b) }
	return suite.Limits{Memory: first(l.Memory, under.Memory), CPUs: first(l.CPUs, under.CPUs), Pids: first(l.Pids, under.Pids), Timeout: first(l.Timeout, under.Timeout),
		CPUTime: first(l.CPUTime, under.CPUTime), Output: first(l.Output, under.Output), Disk: first(l.Disk, under.Disk)}
}

// stopTimeout is short: an agent that ignores its end would occupy its place.
const stopTimeout = "2s"

// request is what every sandbox of a bench has.
func (r *Runner) request(limits suite.Limits, network suite.Network, seed int64, cpus []int) resolve.Request {
	var q resolve.Request
	for name, text := range map[string]policies.Text{
		settings.Memory: limits.Memory, settings.CPUs: limits.CPUs, settings.Pids: limits.Pids, settings.Timeout: limits.Timeout, settings.CPUTime: limits.CPUTime,
		settings.Output: limits.Output, settings.Disk: limits.Disk, settings.StopTimeout: stopTimeout, settings.NetworkMode: policies.Text(network.Mode),
	} {
		q.Set(name, string(text))
	}
	q.Add(settings.Allow, network.Allow...)
	q.Add(settings.Deny, network.Deny...)
	q.Add(settings.Label, "bench="+r.Suite.Name)
	if !r.NoParity {
		even(&q, seed, cpus)
		q.ClockStart, _ = r.Suite.Clocks() // suite.Load checked it
	}
	return q
}

// hostname is the same for all attempts.
const hostname = "bench"

// even makes a sandbox like all others of the bench. Swap is off in every run of clove, and
// clove-init sets the umask.
func even(q *resolve.Request, seed int64, cpus []int) {
	q.Set(settings.CPUSet, list(cpus))
	q.Set(settings.Hostname, hostname)
	for _, v := range variables(seed) {
		q.Add(settings.Env, v.name+"="+v.value)
	}
}

type variable struct{ name, value string }

// variables are what programs take times, languages and random numbers from.
func variables(seed int64) []variable {
	return []variable{{"TZ", "UTC"}, {"LANG", "C.UTF-8"}, {"LC_ALL", "C.UTF-8"},
		{"PYTHONHASHSEED", strconv.FormatUint(uint64(uint32(seed)), 10)}, {"SOURCE_DATE_EPOCH", strconv.FormatInt(files.Epoch().Unix(), 10)}}
}

func list(cpus []int) string {
	words := make([]string, len(cpus))
	for i, n := range cpus {
		words[i] = strconv.Itoa(n)
	}
	return strings.Join(words, ",")
}

// environment adds what the task's environment has, and returns it.
func (r *Runner) environment(q *resolve.Request, task suite.Task) suite.Environment {
	e, _ := r.Suite.FindEnvironment(task.Environment) // suite.Load checked it
	q.Set(settings.Rootfs, e.Rootfs)
	q.Set(settings.Workdir, e.Workdir)
	onRoot(q, e)
	addVariables(q, e.Variables)
	if dir := r.prepared[e.Name].env; dir != "" {
		q.Add(settings.Volume, dir+":/env:ro")
	}
	return e
}

// onRoot adds what all phases of an environment share.
func onRoot(q *resolve.Request, e suite.Environment) {
	q.Set(settings.User, cmp.Or(e.User, q.Text(settings.User)))
	if e.Kept() {
		q.Set(settings.Disk, string(cmp.Or(e.Disk, standard.Disk)))
	}
}

func addVariables(q *resolve.Request, of map[string]string) {
	for _, key := range slices.Sorted(maps.Keys(of)) {
		q.Add(settings.Env, key+"="+of[key])
	}
}

// ofAgent is the sandbox of the agent of an attempt.
func (r *Runner) ofAgent(a plan.Attempt, w work, cpus []int) resolve.Request {
	q := r.request(r.limits(a), join(a.Task.Network, a.Agent.Network), a.Seed, cpus)
	if e := r.environment(&q, a.Task); !e.Kept() {
		q.Set(settings.Workspace, w.workspace())
		q.Add(settings.Env, "BENCH_METRICS="+agent.WorkspaceDir+"/"+MetricsFile)
	}
	q.Args = words(a)
	if a.Agent.Metrics == suite.MetricsDescriptor {
		q.Args = append(withDescriptor(), q.Args...)
		q.Add(settings.Env, "BENCH_METRICS_FD=3")
	}
	q.Add(settings.Volume, w.task()+":/task:ro")
	if a.Agent.Files != "" {
		q.Add(settings.Volume, r.Suite.Dir+"/"+a.Agent.Files+":"+agentDir+":ro")
	}
	if a.Agent.Solution {
		q.Add(settings.Volume, r.Suite.Dir+"/"+a.Task.Solution.Files+":"+solutionDir+":ro")
		addVariables(&q, a.Task.Solution.Variables)
	}
	q.Add(settings.Env, "BENCH_TASK="+a.Task.Name, "BENCH_SEED="+strconv.FormatInt(a.Seed, 10))
	addVariables(&q, a.Agent.Environment)
	q.Add(settings.Env, a.Agent.Pass...)
	q.Add(settings.Model, a.Agent.Models...)
	q.Add(settings.Budget, a.Agent.Budgets...)
	q.Add(settings.Label, "attempt="+a.ID())
	return q
}

// agentDir is where the files of an agent are shown, and solutionDir those of a task's own.
const (
	agentDir    = "/agent"
	solutionDir = "/solution"
)

// limits of an attempt's agent.
func (r *Runner) limits(a plan.Attempt) suite.Limits {
	return over(a.Task.Limits, over(r.Suite.Limits, standard))
}

// rewardSize bounds what a grader writes beside its score. It is memory of the grader's, and
// new: no agent has left a score in it.
const rewardSize = "16M"

// ofGrader is the sandbox of its grader.
func (r *Runner) ofGrader(a plan.Attempt, w work, cpus []int) resolve.Request {
	g := a.Task.Grade
	q := r.request(over(g.Limits, over(r.Suite.Limits, standard)), g.Network, a.Seed, cpus)
	e := r.environment(&q, a.Task)
	q.Args = grade.Command(g)
	q.Set(settings.User, cmp.Or(g.User, q.Text(settings.User)))
	switch {
	case g.At != "":
		q.Add(settings.Volume, w.grader()+":"+g.At+":ro")
	case !e.Kept():
		q.Set(settings.Workspace, w.grader())
	}
	if !e.Kept() {
		q.Add(settings.Volume, w.workspace()+":/attempt:ro")
	}
	if g.Score == suite.ScoreReward {
		q.Add(settings.Tmpfs, suite.RewardDir+":size="+rewardSize)
	}
	q.Add(settings.Volume, w.output()+":/output:ro")
	addVariables(&q, g.Variables)
	q.Add(settings.Env, "BENCH_TASK="+a.Task.Name, "BENCH_SEED="+strconv.FormatInt(a.Seed, 10))
	q.Add(settings.Label, "attempt="+a.ID(), "grader=yes")
	q.Set(settings.Remove, "true")
	return q
}

// words is the agent's command line with the values in the places of {instruction}, {task}
// and {seed}.
func words(a plan.Attempt) []string {
	values := strings.NewReplacer("{instruction}", a.Task.Instruction, "{task}", a.Task.Name, "{seed}", fmt.Sprint(a.Seed))
	all := make([]string, len(a.Agent.Command))
	for i, word := range a.Agent.Command {
		all[i] = values.Replace(word)
	}
	return all
}

// join is what two phases' networks allow together.
func join(a, b suite.Network) suite.Network {
	wider := map[string]int{"": 0, "none": 1, "allowlist": 2, "public": 3}
	if wider[b.Mode] > wider[a.Mode] {
		a.Mode = b.Mode
	}
	return suite.Network{Mode: a.Mode, Allow: slices.Concat(a.Allow, b.Allow), Deny: slices.Concat(a.Deny, b.Deny)}
}
