package run

import (
	"context"
	"io"
	"strings"
	"testing"

	"clove.run/clove/agent"
	"clove.run/clove/bench"
	"clove.run/clove/bench/plan"
	"clove.run/clove/bench/suite"
	"clove.run/clove/policies/host"
)

func TestWhereProgramsAreLookedUp(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]struct {
		file  string
		known bool
	}{
		"sh": {"", false}, "/usr/bin/sh": {"", false}, "/env/x": {"", false}, "./x": {"start/x", true}, "bin/x": {"start/bin/x", true}, "/workspace/x": {"start/x", true},
		"/agent/../agent/x": {"mine/x", true}, "/attempt/x": {"", true}, "/agentx": {"", false}, "/solution/x": {noFolder + "/x", true},
	} {
		p := program{name: name, dir: agent.WorkspaceDir, files: [3]mountedAt{{agent.WorkspaceDir, "start"}, {agentDir, "mine"}, {solutionDir, ""}}}
		if file, known := p.onHost(); file != want.file || known != want.known {
			t.Errorf("%s: %q, %t", name, file, known)
		}
	}
}

// Where the root is kept, nothing is at /workspace, and only the attempt knows where a relative
// path begins. A grader's files may be elsewhere.
func TestWhereProgramsOfAKeptRootAreLookedUp(t *testing.T) {
	t.Parallel()
	e := suite.Environment{Name: "e", Root: suite.RootKept}
	r := &Runner{Suite: &suite.Suite{Environments: []suite.Environment{e}}}
	a := plan.Attempt{Agent: suite.Agent{Name: "a", Command: []string{"./x"}, Solution: true},
		Task: suite.Task{Name: "t", Environment: "e", Solution: &suite.Solution{Files: "sol"}, Grade: suite.Grade{Command: []string{"/tests/x"}, At: "/tests", Files: "tests"}}}
	found := r.programsOf([]plan.Attempt{a, a})
	if len(found) != 2 {
		t.Fatalf("%+v", found)
	}
	for i, want := range []string{"", "tests/x"} {
		if file, known := found[i].onHost(); !known || file != want {
			t.Errorf("%+v: %q, %t", found[i], file, known)
		}
	}
	a.Agent.Command = []string{"/solution/solve.sh"}
	if file, known := r.programsOf([]plan.Attempt{a})[0].onHost(); !known || file != "sol/solve.sh" {
		t.Errorf("%q, %t", file, known)
	}
	a.Agent.Command = []string{"/workspace/x"}
	if file, known := r.programsOf([]plan.Attempt{a})[0].onHost(); known {
		t.Errorf("%q", file)
	}
}

// ended is a Sandboxes whose every run ends with this record, having written a text.
type ended struct {
	record agent.Record
	text   string
	runs   int
}

func (e *ended) Run(_ context.Context, _ agent.Spec, out Output) (agent.Record, error) {
	e.runs++
	_, err := io.WriteString(out.Stdout, e.text)
	return e.record, err
}
func (*ended) Collect(context.Context, agent.ID, int64) ([]agent.Change, error) { return nil, nil }
func (*ended) Remove(context.Context, agent.ID) error                           { return nil }
func (*ended) KeepLayer(context.Context, agent.ID, string) (bool, error)        { return false, nil }

func oneAttempt(t *testing.T, with *ended) (*Runner, plan.Attempt) {
	s := &suite.Suite{Name: "s", Dir: t.TempDir(), Seeds: []int64{1}}
	r := &Runner{Suite: s, Dir: t.TempDir(), Sandboxes: with, Retries: 2, Host: host.Host{Dir: "/", CPUs: []int{0}, Base: host.BaseDirs}}
	return r, plan.Attempt{Task: suite.Task{Name: "t", Grade: suite.Grade{Command: []string{"grader"}}}, Agent: suite.Agent{Name: "a", Command: []string{"program"}}, Seed: 1}
}

// A failure of the infrastructure is tried again; a program that is not there is not.
func TestTries(t *testing.T) {
	t.Parallel()
	failed := func(step string) agent.Record {
		return agent.Record{Status: agent.StatusStartFailed, Error: &agent.Failure{Step: step, Message: "failed"}}
	}
	for step, want := range map[string]int{"rootfs": 3, "look up": 1, "execve": 1} {
		r, a := oneAttempt(t, &ended{record: failed(step)})
		result, err := r.attempt(t.Context(), a, []int{0})
		if err != nil || result.Outcome != bench.Infrastructure || result.Tries != want {
			t.Errorf("%s: %+v, %v", step, result, err)
		}
	}
}

// The numbers that a sandbox prints are those of missing programs. Others are ignored, and a
// sandbox that has no shell says nothing.
func TestMissingProgramsAreNamed(t *testing.T) {
	t.Parallel()
	ok := agent.Record{Status: agent.StatusExited}
	for _, c := range []struct {
		with ended
		want string
	}{
		{ended{record: ok}, ""},
		{ended{record: ok, text: "2\n"}, `no such program: tasks.t.grade: "grader"`},
		{ended{record: ok, text: "0 3 -1 x 1\n"}, `no such program: agents.a: "program"`},
		{ended{record: agent.Record{Status: agent.StatusOOM}}, "the search for programs ended with oom"},
		{ended{record: agent.Record{Status: agent.StatusStartFailed, Error: &agent.Failure{Step: "look up"}}}, ""},
	} {
		r, a := oneAttempt(t, &c.with)
		err := r.Programs(t.Context(), []plan.Attempt{a, a})
		if c.with.runs != 1 || (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v", c.with, err)
		}
	}
}
