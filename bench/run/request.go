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
	"clove.run/clove/policies/build"
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
func (r *Runner) request(limits suite.Limits, network suite.Network, seed int64, cpus []int) build.Request {
	q := build.Request{
		Memory: string(limits.Memory), CPUs: string(limits.CPUs), Pids: string(limits.Pids), Timeout: string(limits.Timeout), CPUTime: string(limits.CPUTime),
		Output: string(limits.Output), Disk: string(limits.Disk), StopTimeout: stopTimeout,
		Network: network.Mode, Allow: network.Allow, Deny: network.Deny,
		Labels: []string{"bench=" + r.Suite.Name},
	}
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
func even(q *build.Request, seed int64, cpus []int) {
	q.CPUSet = list(cpus)
	q.Hostname = hostname
	for _, v := range variables(seed) {
		q.Env = append(q.Env, v.name+"="+v.value)
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
func (r *Runner) environment(q *build.Request, task suite.Task) suite.Environment {
	e, _ := r.Suite.FindEnvironment(task.Environment) // suite.Load checked it
	q.Rootfs, q.Workdir = e.Rootfs, e.Workdir
	onRoot(q, e)
	addVariables(q, e.Variables)
	if dir := r.prepared[e.Name].env; dir != "" {
		q.Volumes = append(q.Volumes, dir+":/env:ro")
	}
	return e
}

// onRoot adds what all phases of an environment share.
func onRoot(q *build.Request, e suite.Environment) {
	q.User = cmp.Or(e.User, q.User)
	if e.Kept() {
		q.Disk = string(cmp.Or(e.Disk, standard.Disk))
	}
}

func addVariables(q *build.Request, of map[string]string) {
	for _, key := range slices.Sorted(maps.Keys(of)) {
		q.Env = append(q.Env, key+"="+of[key])
	}
}

// ofAgent is the sandbox of the agent of an attempt.
func (r *Runner) ofAgent(a plan.Attempt, w work, cpus []int) build.Request {
	q := r.request(r.limits(a), join(a.Task.Network, a.Agent.Network), a.Seed, cpus)
	if e := r.environment(&q, a.Task); !e.Kept() {
		q.Workspace = w.workspace()
		q.Env = append(q.Env, "BENCH_METRICS="+agent.WorkspaceDir+"/"+MetricsFile)
	}
	q.Args = words(a)
	if a.Agent.Metrics == suite.MetricsDescriptor {
		q.Args = append(withDescriptor(), q.Args...)
		q.Env = append(q.Env, "BENCH_METRICS_FD=3")
	}
	q.Volumes = append(q.Volumes, w.task()+":/task:ro")
	if a.Agent.Files != "" {
		q.Volumes = append(q.Volumes, r.Suite.Dir+"/"+a.Agent.Files+":"+agentDir+":ro")
	}
	if a.Agent.Solution {
		q.Volumes = append(q.Volumes, r.Suite.Dir+"/"+a.Task.Solution.Files+":"+solutionDir+":ro")
		addVariables(&q, a.Task.Solution.Variables)
	}
	q.Env = append(q.Env, "BENCH_TASK="+a.Task.Name, "BENCH_SEED="+strconv.FormatInt(a.Seed, 10))
	addVariables(&q, a.Agent.Environment)
	q.Env = append(q.Env, a.Agent.Pass...)
	q.Models, q.Budgets = a.Agent.Models, a.Agent.Budgets
	q.Labels = append(q.Labels, "attempt="+a.ID())
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
func (r *Runner) ofGrader(a plan.Attempt, w work, cpus []int) build.Request {
	g := a.Task.Grade
	q := r.request(over(g.Limits, over(r.Suite.Limits, standard)), g.Network, a.Seed, cpus)
	e := r.environment(&q, a.Task)
	q.Args = grade.Command(g)
	q.User = cmp.Or(g.User, q.User)
	switch {
	case g.At != "":
		q.Volumes = append(q.Volumes, w.grader()+":"+g.At+":ro")
	case !e.Kept():
		q.Workspace = w.grader()
	}
	if !e.Kept() {
		q.Volumes = append(q.Volumes, w.workspace()+":/attempt:ro")
	}
	if g.Score == suite.ScoreReward {
		q.Tmpfs = []string{suite.RewardDir + ":size=" + rewardSize}
	}
	q.Volumes = append(q.Volumes, w.output()+":/output:ro")
	addVariables(&q, g.Variables)
	q.Env = append(q.Env, "BENCH_TASK="+a.Task.Name, "BENCH_SEED="+strconv.FormatInt(a.Seed, 10))
	q.Labels = append(q.Labels, "attempt="+a.ID(), "grader=yes")
	q.Remove = true
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
