package main

import (
	"strings"
	"testing"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/policies"
)

func endedRun(record agent.Record) agent.Run {
	spec := policies.Standard()
	spec.ID, spec.Name = "aaaaaaaaaaaaaaaa", "web"
	run := agent.Run{Spec: spec, State: agent.StateEnded, Record: &record}
	run.Queue.Stopped, run.Queue.StopAsked = record.Stopped, record.Stopped != nil
	return run
}

// Each status is explained, and each limit with its value, its peak and what raises it.
func TestWhyRunOfEveryStatus(t *testing.T) {
	peak, killed := int64(300<<20), "SIGKILL"
	hit := func(name string, value int64) *agent.LimitHit {
		return &agent.LimitHit{Name: name, Value: value, Peak: &peak}
	}
	rows := map[agent.Status]struct {
		record agent.Record
		want   []string
	}{
		agent.StatusExited:      {agent.Record{WallMS: 1500}, []string{"web ended by itself after 1.5s, with exit status 0", "nothing was refused, and it reached no limit"}},
		agent.StatusSignaled:    {agent.Record{Signal: new("SIGSEGV"), ExitCode: 139}, []string{"was ended by SIGSEGV", "nothing was refused"}},
		agent.StatusTimeout:     {agent.Record{Limit: hit("wall-clock", 60000), ExitCode: 124}, []string{"wall clock limit of 1m0s reached", "flag: --timeout; policy: limits.timeout"}},
		agent.StatusCPUTime:     {agent.Record{Limit: hit("cpu-time", 60000)}, []string{"CPU time limit", "limits.cpu_time"}},
		agent.StatusOOM:         {agent.Record{Limit: hit("memory", 256<<20), ExitCode: 137}, []string{"exits with 137", "memory limit of 256MiB reached (peak 300MiB): raise --memory", "limits.memory"}},
		agent.StatusOutputLimit: {agent.Record{Limit: hit("output", 1<<20)}, []string{"output limit of 1MiB", "limits.output"}},
		agent.StatusDiskFull:    {agent.Record{Limit: hit("disk", 1<<20)}, []string{"disk limit of 1MiB", "limits.disk"}},
		agent.StatusPolicyKill:  {agent.Record{Denials: []agent.Denial{{Kind: "network", Target: "tcp://10.0.0.1:443", Rule: "private"}}}, []string{"ended by --on-denial", "refused: network tcp://10.0.0.1:443, by private"}},
		agent.StatusBudget:      {agent.Record{Limit: hit("tokens", 5)}, []string{"budget of 5 tokens spent", "--budget tokens=10"}},
		agent.StatusKilled:      {agent.Record{Signal: &killed, Ended: time.Now(), Stopped: &agent.Stopped{By: "uid 1000, process 4711"}}, []string{"was stopped by uid 1000, process 4711 at ", "and was killed, at once or at the end of its grace"}},
		agent.StatusIdle:        {agent.Record{WallMS: 1500, Error: &agent.Failure{Step: "idle", Message: "its agent only waited"}}, []string{"web was ended after 1.5s: idle: its agent only waited"}},
		agent.StatusStartFailed: {agent.Record{Error: &agent.Failure{Step: "--memory", Message: "too much", Hint: "ask for less"}}, []string{"could not be started: --memory: too much", "hint: ask for less"}},
	}
	for _, status := range agent.Statuses {
		row, there := rows[status]
		if !there {
			t.Errorf("no row for %s", status)
			continue
		}
		row.record.Status = status
		b := newBench(t)
		b.backend.runs = []agent.Run{endedRun(row.record)}
		code, stdout, stderr := b.clove("why", "run", "web")
		if code != 0 || stderr != "" {
			t.Errorf("%s: %d, %s", status, code, stderr)
		}
		for _, want := range row.want {
			if !strings.Contains(stdout, want) {
				t.Errorf("%s: without %q\n%s", status, want, stdout)
			}
		}
		if said := strings.Contains(stdout, "nothing was refused"); said != strings.Contains(strings.Join(row.want, ""), "nothing was refused") {
			t.Errorf("%s:\n%s", status, stdout)
		}
	}
}

func TestWhyRunAdvises(t *testing.T) {
	b := newBench(t)
	b.backend.runs = []agent.Run{endedRun(agent.Record{Status: agent.StatusExited, Denials: []agent.Denial{
		{Kind: "network", Target: "dns://api.example.com", Rule: "mode-none", Count: 3}, {Kind: "syscall", Target: "mount", Rule: "standard", Count: 1}}})}
	_, stdout, _ := b.clove("why", "run", "web")
	want := `web ended by itself, with exit status 0
refused: network dns://api.example.com, by mode-none (3 times)
  flag: --allow api.example.com:443
  policy: network: {mode: allowlist, allow: ["api.example.com:443"]}
  risk: the agent can send all that it reads to the servers of this name
refused: syscall mount, by standard
  flag: --seccomp unconfined
  policy: seccomp: unconfined
  risk: no call is filtered any more`
	if !strings.HasPrefix(stdout, want) {
		t.Errorf("got\n%s\nwant\n%s", stdout, want)
	}
	var of whyRun
	_, stdout, _ = b.clove("why", "--json", "run", "web")
	if unmarshal(t, stdout, &of); of.Name != "web" || of.Status != agent.StatusExited || len(of.Denials) != 2 || of.Denials[0].Count != 3 || of.Denials[0].Advice.Flag == "" {
		t.Errorf("\n%s", stdout)
	}
}

func TestWhyRunOfALiveRun(t *testing.T) {
	b := newBench(t)
	run := endedRun(agent.Record{})
	run.State, run.Record = agent.StateRunning, nil
	b.backend.runs = []agent.Run{run}
	if status, stdout, _ := b.clove("why", "run", "web"); status != 0 || !strings.Contains(stdout, "web is running") {
		t.Errorf("%d, %s", status, stdout)
	}
}

// A run wins over a host only where the argument cannot mean a host.
func TestWhyTellsRunsFromHosts(t *testing.T) {
	b := newBench(t)
	run := endedRun(agent.Record{Status: agent.StatusExited})
	dotted := run
	dotted.Spec.Name = "web.example.com"
	member := run
	member.Spec.Name, member.Spec.Labels = "paper.report", map[string]string{policies.LabelTeam: "paper", policies.LabelAgent: "report"}
	b.backend.runs = []agent.Run{run, dotted, member}
	for line, isRun := range map[string]bool{
		"why web": true, "why run web": true, "why run web.example.com": true, "why --json web": true, "why paper.report": true,
		"why web:80": false, "why web.example.com": false, "why web --allow web.example.com": false, "why paper.report --allow web.example.com": false, "why paper.other": false, "why localhost": false, "why 10.0.0.1": false,
	} {
		status, stdout, stderr := b.clove(append([]string{"--root", b.host.Dir}, strings.Fields(line)...)...)
		if got := strings.Contains(stdout, "ended by itself"); got != isRun || isRun != (status == 0) {
			t.Errorf("%s: %d\n%s%s", line, status, stdout, stderr)
		}
	}
	if _, _, stderr := b.clove("--root", b.host.Dir, "why", "webb"); !strings.Contains(stderr, "as a host; did you mean web?") {
		t.Errorf("%s", stderr)
	}
	if _, _, stderr := b.clove("--root", b.host.Dir, "why", "nobody"); !strings.Contains(stderr, `no run "nobody", so it is taken as a host`) {
		t.Errorf("%s", stderr)
	}
	for _, line := range []string{"why run nobody", "why run web --allow a.example.com", "why", "why a.example.com b.example.com"} {
		if status, stdout, stderr := b.clove(strings.Fields(line)...); status != exitFailed || stdout != "" || !strings.Contains(stderr, "hint:") {
			t.Errorf("%s: %d\n%s%s", line, status, stdout, stderr)
		}
	}
	// Where there is no store, none is made.
	b.paths = 0
	if b.clove("--root", b.host.Dir+"/none", "why", "web"); b.paths != 0 {
		t.Error("the store was opened")
	}
}

// The refusals of a shadow are a section of their own, with lines of the policy and no flags,
// which would widen the run's own policy too. The control is the run without a shadow.
func TestWhyShowsAShadow(t *testing.T) {
	run := endedRun(agent.Record{Status: agent.StatusExited, Shadow: &agent.ShadowUse{Policy: agent.Policy{Name: "strict"}, Refused: 6, Others: 2,
		Denials: []agent.Denial{{Kind: "network", Target: "dns://api.example.com", Rule: "mode-none", Count: 3}, {Kind: "grant", Target: "tool:a", Rule: "no grant covers it", Count: 1}},
		Limits: []agent.ShadowLimit{{Place: "limits.memory", Value: 256 << 20, Peak: 410<<20 + 1}, {Place: "limits.timeout", Value: 1000, Peak: 1500},
			{Place: "budgets.tokens", Value: 5, Peak: 9}, {Place: "on_denial", Value: 1, Peak: 2}},
		Wider: []string{"limits.pids"}, Unseen: []string{"user"}}})
	control := newBench(t)
	control.backend.runs = []agent.Run{endedRun(agent.Record{Status: agent.StatusExited})}
	if _, stdout, _ := control.clove("why", "run", "web"); strings.Contains(stdout, "would have") {
		t.Errorf("control: %s", stdout)
	}
	other := run.Spec
	other.Policy = agent.Policy{Name: "strict"}
	run.Spec.Shadow = agent.ShadowOf(other)
	b := newBench(t)
	b.backend.runs = []agent.Run{run}
	_, stdout, _ := b.clove("why", "run", "web")
	for _, want := range []string{
		"policy strict would have refused 6 actions by 2 rules, and not have been enough in limits.memory, limits.timeout, budgets.tokens, on_denial\n",
		"more than limits.memory, 256MiB; it was 410MiB\n  policy: limits.memory: 411M\n",
		"more than limits.timeout, 1s; it was 1.5s\n  policy: limits.timeout: 2s\n",
		"  policy: budgets: [tokens=9]\n", "  policy: on_denial: deny\n",
		"would have been refused by strict: network dns://api.example.com, by mode-none (3 times)\n  policy: network: {mode: allowlist, allow: [\"api.example.com:443\"]}\n",
		"would have been refused by strict: grant tool:a, by no grant covers it\n  policy: grants: [\"tool:a\"]\n",
		"2 times, other targets", "wider than the run's own policy in limits.pids", "narrower in user too",
	} {
		if !strings.Contains(stdout, want) {
			t.Errorf("without %q:\n%s", want, stdout)
		}
	}
	if strings.Contains(stdout, "flag:") {
		t.Errorf("a flag is named:\n%s", stdout)
	}
}

// TestEndsAreToldApart: a restart policy that gave up, a stop, the death of clove and, the
// control, an end by itself, in ps and why. A stop after the end is none.
func TestEndsAreToldApart(t *testing.T) {
	at := time.Now()
	stopped := &agent.Stopped{By: "uid 0, process 7", Time: at}
	exited := agent.Record{Status: agent.StatusExited, ExitCode: 3, Ended: at}
	for name, row := range map[string]struct {
		record   agent.Record
		queue    agent.QueueState
		ps, said string
	}{
		"itself":            {exited, agent.QueueState{}, "exited", "web ended by itself, with exit status 3"},
		"gave up":           {exited, agent.QueueState{Restarts: 2, GivenUp: true}, "given-up", "and its restart policy gave up after restart 2: clove restart begins again"},
		"stop":              {exited, agent.QueueState{StopAsked: true, Stopped: stopped}, "stopped", "was stopped by uid 0, process 7 at "},
		"TERM of a stop":    {agent.Record{Status: agent.StatusSignaled, Signal: new("SIGTERM"), Ended: at}, agent.QueueState{StopAsked: true, Stopped: stopped}, "stopped", "and ended by SIGTERM"},
		"stop after it":     {exited, agent.QueueState{StopAsked: true, Stopped: &agent.Stopped{Time: at.Add(time.Second)}}, "exited", "web ended by itself"},
		"a limit in a stop": {agent.Record{Status: agent.StatusOOM, Ended: at, Limit: &agent.LimitHit{Name: "memory", Value: 1 << 20}}, agent.QueueState{StopAsked: true, Stopped: stopped}, "oom", "memory limit of 1MiB"},
		"death of clove": {agent.Record{Status: agent.StatusKilled, Ended: at, Error: &agent.Failure{Step: agent.StepSupervise, Message: "clove itself was killed"}}, agent.QueueState{},
			"lost", "web was ended: clove itself was killed"},
		"TERM to clove run": {agent.Record{Status: agent.StatusKilled, Ended: at}, agent.QueueState{}, "killed", "because clove run was ended or interrupted"},
	} {
		b := newBench(t)
		run := endedRun(row.record)
		run.Queue = row.queue
		b.backend.runs = []agent.Run{run}
		if _, listed, _ := b.clove("ps", "-a", "--format", "{{.Status}}"); listed != row.ps+"\n" {
			t.Errorf("%s: ps says %q", name, listed)
		}
		for _, state := range []string{row.ps, string(row.record.Status)} {
			if _, listed, _ := b.clove("ps", "--filter", "state="+state, "--format", "{{.Names}}"); !strings.Contains(listed, "web") {
				t.Errorf("%s: the filter %s does not show it", name, state)
			}
		}
		if _, said, _ := b.clove("why", "run", "web"); !strings.Contains(said, row.said) {
			t.Errorf("%s: why says %q", name, said)
		}
	}
}

// Ends that the runs above a child made are told apart from those by its own limits, which are the controls: no flag of
// its own is advised.
func TestWhyOfAFamily(t *testing.T) {
	peak := new(int64(20 << 20))
	limit := func(name string, value int64) *agent.LimitHit {
		return &agent.LimitHit{Name: name, Value: value, Peak: peak}
	}
	deadline := &agent.Failure{Step: agent.StepDeadline, Message: "its deadline came: it ends no later than the run that started it"}
	const next = "next: clove why lead explains the run that started it\n"
	for name, row := range map[string]struct {
		record agent.Record
		want   []string
		not    string
	}{
		"the parent ended": {agent.Record{Status: agent.StatusKilled, WallMS: 1500, ExitCode: 137, Error: &agent.Failure{Step: agent.StepParent, Message: "its parent lead ended"}},
			[]string{"web was ended after 1.5s: its parent lead ended\n", "hint: clove why lead says how that ended; children of a run with orphans: keep go on without it\n", next}, "clove run was ended"},
		"killed": {agent.Record{Status: agent.StatusKilled, WallMS: 1500, ExitCode: 137}, []string{"because clove run was ended or interrupted\n"}, "lead"},
		"no memory in the tree": {agent.Record{Status: agent.StatusOOM, ExitCode: 137, Limit: limit(agent.LimitTreeMemory, 64<<20)},
			[]string{"out of memory below the limit of 64MiB (peak 20MiB): a run above it and all that are below that had no more together: raise --memory of that run, or", next}, "flag:"},
		"no memory of its own": {agent.Record{Status: agent.StatusOOM, ExitCode: 137, Limit: limit(agent.ControlMemory, 64<<20)}, []string{"memory limit of 64MiB reached", "flag: --memory;"}, "together"},
		"the family's deadline": {agent.Record{Status: agent.StatusTimeout, WallMS: 2000, ExitCode: 124, Limit: limit(agent.ControlWallClock, 2000), Error: deadline},
			[]string{"web was ended after 2s: its deadline came: it ends no later than the run that started it\nraise --timeout of the run that started it, or", next}, "flag:"},
		"the deadline before a start": {agent.Record{Status: agent.StatusTimeout, ExitCode: 124, Error: &agent.Failure{Step: agent.StepDeadline, Message: "web cannot start: its deadline was T", Hint: "a run that an agent starts ends no later than that agent"}},
			[]string{"web was not started: web cannot start: its deadline was T\nraise --timeout of the run that started it, or", "hint: a run that", next}, "flag:"},
		"its own timeout": {agent.Record{Status: agent.StatusTimeout, WallMS: 2000, ExitCode: 124, Limit: limit(agent.ControlWallClock, 2000)}, []string{"wall clock limit of 2s reached", "flag: --timeout;"}, "lead"},
		"no parent": {agent.Record{Status: agent.StatusStartFailed, ExitCode: 125, Error: &agent.Failure{Step: agent.StepParent, Message: "web cannot start: lead, which started it, does not live", Hint: "start that one; it may start this one again"}},
			[]string{"web could not be started: parent: web cannot start: lead, which started it, does not live\n", "hint: start that one"}, "orphans"},
	} {
		b := newBench(t)
		run := endedRun(row.record)
		run.Parent, run.Above = "bbbbbbbbbbbbbbbb", []agent.Ancestor{{ID: "bbbbbbbbbbbbbbbb", Name: "lead"}}
		run.Record.Parent = run.Parent
		b.backend.runs = []agent.Run{run}
		status, stdout, stderr := b.clove("why", "run", "web")
		for _, want := range row.want {
			if !strings.Contains(stdout, want) {
				t.Errorf("%s: without %q\n%s", name, want, stdout)
			}
		}
		if status != 0 || stderr != "" || strings.Contains(stdout, row.not) {
			t.Errorf("%s: %d, %s, with %q\n%s", name, status, stderr, row.not, stdout)
		}
	}
	// A run that no agent started meets the limit of its own tree.
	b := newBench(t)
	b.backend.runs = []agent.Run{endedRun(agent.Record{Status: agent.StatusOOM, ExitCode: 137, Limit: limit(agent.LimitTreeMemory, 64<<20)})}
	if _, stdout, _ := b.clove("why", "run", "web"); !strings.Contains(stdout, "it and the runs that its agent started had no more together: raise --memory, or") {
		t.Errorf("%s", stdout)
	}
}
