package run

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/bench"
	"clove.run/clove/bench/plan"
	"clove.run/clove/bench/suite"
	"clove.run/clove/policies/settings"
)

func number(n int64) *int64 { return &n }

// What an agent can bring about itself is a result; all else is not.
func TestOutcomes(t *testing.T) {
	t.Parallel()
	memory := func(peak int64) *agent.LimitHit {
		return &agent.LimitHit{Name: agent.ControlMemory, Value: 100, Peak: number(peak)}
	}
	for _, c := range []struct {
		record agent.Record
		says   bool // something about the agent
		cause  string
	}{
		{agent.Record{Status: agent.StatusExited}, true, ""},
		{agent.Record{Status: agent.StatusExited, ExitCode: 3}, true, "exit status 3"},
		{agent.Record{Status: agent.StatusOOM, Limit: memory(99)}, true, "oom"},
		{agent.Record{Status: agent.StatusOOM, Limit: &agent.LimitHit{Name: agent.LimitHostMemory, Value: 100, Peak: number(20)}}, false, "oom"},
		{agent.Record{Status: agent.StatusOOM, Limit: &agent.LimitHit{Name: agent.ControlSockets, Value: 100, Peak: number(1)}}, true, "oom"},
		{agent.Record{Status: agent.StatusTimeout}, true, "timeout"},
		{agent.Record{Status: agent.StatusBudget}, true, "budget"},
		{agent.Record{Status: agent.StatusOutputLimit}, true, "output-limit"},
		{agent.Record{Status: agent.StatusPolicyKill}, true, "policy-kill"},
		{agent.Record{Status: agent.StatusKilled}, false, "killed"},
		{agent.Record{Status: agent.StatusStartFailed, Error: &agent.Failure{Step: "rootfs", Message: "failed"}}, false, "start-failed"},
	} {
		if why := infrastructure(c.record); (why == "") != c.says {
			t.Errorf("%+v: %q", c.record, why)
		}
		if got := cause(c.record, ""); got != c.cause {
			t.Errorf("%+v: %q, want %q", c.record, got, c.cause)
		}
	}
	if got := cause(agent.Record{Status: agent.StatusOOM}, "x: it does not exist"); got != "oom; x: it does not exist" {
		t.Error(got)
	}
}

func TestMetricsOfAnAgent(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	text := `{"steps":1,"tool_calls":2,"tokens_in":10,"model_calls":1,"of":"its own"}` + "\nnonsense\n" + `{"steps":1,"retries":1,"tokens_out":5,"cost_micros":7}` + "\n" + `{"steps":-5}` + "\n"
	if err := os.WriteFile(filepath.Join(dir, MetricsFile), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var m bench.Metrics
	if err := takeMetrics(dir, &m); err != nil {
		t.Fatal(err)
	}
	want := bench.Metrics{Steps: number(2), ToolCalls: number(2), Retries: number(1), ModelCalls: number(1), Tokens: number(15), TokensIn: number(10), TokensOut: number(5),
		TokensCached: number(0), CostMicros: number(7), Own: true, Unreadable: 2}
	if !reflect.DeepEqual(m, want) {
		t.Errorf("%+v", m)
	}
	if _, err := os.Lstat(filepath.Join(dir, MetricsFile)); !os.IsNotExist(err) {
		t.Errorf("the file is still there: %v", err)
	}
	// What clove's service counted stays.
	m = bench.Metrics{Tokens: number(1), ModelCalls: number(1), CostMicros: number(1)}
	if sumMetrics([]byte(text), &m); *m.Tokens != 1 || *m.CostMicros != 1 || m.Own || *m.Steps != 2 {
		t.Errorf("%+v", m)
	}
}

// A link of the agent's in the place of its metrics is not followed.
func TestMetricsAreNoLink(t *testing.T) {
	t.Parallel()
	dir, secret := t.TempDir(), filepath.Join(t.TempDir(), "x")
	if err := os.WriteFile(secret, []byte(`{"steps":1}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(secret, filepath.Join(dir, MetricsFile)); err != nil {
		t.Fatal(err)
	}
	var m bench.Metrics
	if err := takeMetrics(dir, &m); err != nil || m.Steps != nil {
		t.Errorf("%+v, %v", m, err)
	}
}

func TestRequests(t *testing.T) {
	t.Parallel()
	s := &suite.Suite{Name: "s", Dir: "/s", Limits: suite.Limits{Memory: "64M"}}
	r := &Runner{Suite: s, Dir: "/r"}
	a := plan.Attempt{Task: suite.Task{Name: "t", Instruction: "do $x", Limits: suite.Limits{CPUs: "2"}, Network: suite.Network{Allow: []string{"a.example"}}, Grade: suite.Grade{Command: []string{"g"}, Score: suite.ScoreDescriptor}},
		Agent: suite.Agent{Name: "a", Command: []string{"run", "{instruction} {task} {seed}"}, Files: "agents/a", Network: suite.Network{Mode: "allowlist", Allow: []string{"b.example"}}}, Seed: 7}
	q := r.ofAgent(a, r.work(a), []int{1, 3})
	if q.Text(settings.Memory) != "64M" || q.Text(settings.CPUs) != "2" || q.Text(settings.CPUSet) != "1,3" || q.Text(settings.Hostname) != hostname || strings.Join(q.Args, "|") != "run|do $x t 7" {
		t.Errorf("%+v", q)
	}
	if strings.Join(q.Values[settings.Allow], " ") != "a.example b.example" || q.Text(settings.NetworkMode) != "allowlist" || strings.Join(q.Values[settings.Volume], " ") != "/r/work/t.a.7/task:/task:ro /s/agents/a:/agent:ro" {
		t.Errorf("%+v", q)
	}
	g := r.ofGrader(a, r.work(a), []int{1})
	if len(g.Values[settings.Allow]) != 0 || g.Text(settings.Workspace) == q.Text(settings.Workspace) || strings.Join(g.Values[settings.Volume], " ") != "/r/work/t.a.7/workspace:/attempt:ro /r/attempts/t.a.7/output:/output:ro" {
		t.Errorf("%+v", g)
	}
	r.NoParity = true
	if q := r.ofAgent(a, r.work(a), []int{1}); q.Has(settings.CPUSet) || q.Has(settings.Hostname) || strings.Contains(strings.Join(q.Values[settings.Env], " "), "TZ=") {
		t.Errorf("without parity: %+v", q)
	}
}

// Only what a probe saw near its start counts, and only with a time namespace.
func TestClockKnobs(t *testing.T) {
	t.Parallel()
	held := agent.Record{Enforced: map[string]string{agent.ControlClockStart: "time namespace"}}
	for _, c := range []struct {
		start  time.Duration
		record agent.Record
		uptime string
		want   bool
	}{
		{time.Hour, held, "3600.05 1.00", true},
		{time.Hour, held, "3599.00 1.00", false},
		{time.Hour, held, "3700.00 1.00", false},
		{time.Hour, held, "", false},
		{time.Hour, agent.Record{}, "3600.05 1.00", false},
		{0, agent.Record{}, "0.05 1.00", false},
	} {
		got := clockKnobs(c.start, c.record, c.uptime)
		if got[0].Enforced != c.want || got[1].Enforced {
			t.Errorf("%+v: %+v", c, got)
		}
	}
}

func TestKnobs(t *testing.T) {
	t.Parallel()
	v1 := map[string]string{"memory": "100", "memsw": "100", "quota": "50000", "period": "100000", "burst": "0", "cpus": "0-2,4", "TZ": "UTC", "umask": "0022", "hostname": "bench"}
	v2 := map[string]string{"memory": "100", "swap": "0", "max": "50000 100000", "burst": "0", "cpus": "0-2,4"}
	for name, found := range map[string]map[string]string{"v1": v1, "v2": v2} {
		for _, k := range knobs(found, 0.5, 1, "0,1,2,4")[:4] {
			if !k.Enforced {
				t.Errorf("%s: %+v", name, k)
			}
		}
	}
	// What differs or is not known is not enforced.
	for _, k := range knobs(map[string]string{"memory": "100", "memsw": "300", "max": "max 100000", "burst": "5", "cpus": "0-3", "umask": "0002", "left": "1"}, 0.5, 1, "0,1,2,4") {
		if k.Enforced {
			t.Errorf("%+v", k)
		}
	}
}
