package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"clove.run/clove/agent"
)

func TestTheExitStatusIsTheRecords(t *testing.T) {
	for _, status := range []int{0, 1, 42, agent.ExitTimeout, agent.ExitStartFailed, agent.ExitCannotExec, agent.ExitNotFound, agent.ExitKilled, 255} {
		b := newBench(t)
		b.backend.record = agent.Record{Status: agent.StatusExited, ExitCode: status}
		if got, stdout, stderr := b.clove("run", "--", "true"); got != status || stdout != "" || stderr != "" {
			t.Errorf("%d: %d, %q, %q", status, got, stdout, stderr)
		}
	}
}

func TestRunPassesStreamsAndDirectories(t *testing.T) {
	b := newBench(t)
	t.Setenv("CLOVE_RUN_DIR", "/from/environment")
	b.spec("--root", "relative", "--", "true")
	if b.backend.streams.Stdin != b.in || b.backend.streams.Stdout == nil || b.backend.streams.Debug != nil {
		t.Errorf("%+v", b.backend.streams)
	}
	if !filepath.IsAbs(b.opened.State) || filepath.Base(b.opened.State) != "relative" || b.opened.Run != "/from/environment" {
		t.Errorf("%+v", b.opened)
	}
	b.spec("-i", "--debug", "--", "true")
	if b.backend.streams.Debug == nil {
		t.Error("--debug shows nothing")
	}
}

func TestTheResultFile(t *testing.T) {
	b := newBench(t)
	path := b.file("record.json", strings.Repeat("an earlier and longer run", 1000), 0o600)
	b.backend.record = agent.Record{Version: 1, ID: "00112233445566aa", Status: agent.StatusExited, ExitCode: 3}
	if status, _, stderr := b.clove("run", "--result", "record.json", "--", "true"); status != 3 || stderr != "" {
		t.Fatalf("%d, %s", status, stderr)
	}
	var record agent.Record
	unmarshal(t, b.read(path), &record)
	if record.ID != b.backend.record.ID || record.ExitCode != 3 {
		t.Errorf("%+v", record)
	}
	if info, err := os.Stat(path); err != nil || info.Mode() != 0o644 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if entries, _ := os.ReadDir(b.host.Dir); len(entries) != 1 {
		t.Errorf("something was left beside it: %v", entries)
	}
}

func TestALinkInPlaceOfTheResultIsReplacedNotFollowed(t *testing.T) {
	b := newBench(t)
	victim := b.file("victim", "precious", 0o600)
	b.link(victim, "record.json")
	b.spec("--result", "record.json", "--", "true")
	if got := b.read(victim); got != "precious" {
		t.Errorf("written through the link: %q", got)
	}
}

// If the record cannot be written in the end, a successful run fails.
func TestALostResultIsAnError(t *testing.T) {
	b := newBench(t)
	b.file("gone/x", "", 0o600)
	b.backend.during = func() {
		if err := os.RemoveAll(filepath.Join(b.host.Dir, "gone")); err != nil {
			t.Error(err)
		}
	}
	status, _, stderr := b.clove("run", "--result", "gone/record.json", "--", "true")
	if status != exitFailed || !strings.Contains(stderr, "cannot write the record") {
		t.Errorf("%d, %s", status, stderr)
	}
	b.file("gone/x", "", 0o600)
	b.backend.record.ExitCode = 3
	if status, _, _ := b.clove("run", "--result", "gone/record.json", "--", "true"); status != 3 {
		t.Errorf("the agent's own status is lost: %d", status)
	}
}

func TestRunWithJSON(t *testing.T) {
	b := newBench(t)
	b.backend.record = agent.Record{Version: 1, Status: agent.StatusOOM, ExitCode: agent.ExitKilled, Limit: &agent.LimitHit{Name: "memory", Value: 1}}
	status, stdout, stderr := b.clove("run", "--json", "--", "true")
	var record agent.Record
	unmarshal(t, stderr, &record)
	if status != agent.ExitKilled || stdout != "" || record.Status != agent.StatusOOM || strings.Count(stderr, "\n") != 1 {
		t.Errorf("%d, %q, %q", status, stdout, stderr)
	}
	// A run that was refused, and a command line that was refused before.
	for _, line := range []string{"--json --memory 1K -- true", "--json --bogus -- true", "--json"} {
		var refused struct{ Error agent.Failure }
		unmarshal(t, b.refuseWith(strings.Fields(line)...), &refused)
		if refused.Error.Message == "" || refused.Error.Hint == "" {
			t.Errorf("%q: %+v", line, refused)
		}
	}
}

// refuseWith is refuse for a bench that has run commands before.
func (b *bench) refuseWith(args ...string) string {
	b.t.Helper()
	b.paths = 0
	return b.refuse(args...)
}

func TestAFailedStartIsExplained(t *testing.T) {
	b := newBench(t)
	b.backend.record = agent.Record{Status: agent.StatusStartFailed, ExitCode: agent.ExitNotFound,
		Error: &agent.Failure{Step: "exec", Message: "cannot find true", Errno: "no such file or directory", Hint: "look inside"}}
	status, _, stderr := b.clove("run", "--", "true")
	if want := "clove: exec: cannot find true: no such file or directory\nhint: look inside\n"; status != agent.ExitNotFound || stderr != want {
		t.Errorf("%d, %q", status, stderr)
	}
	b.backend.record, b.backend.failure = agent.Record{}, &agent.Error{Kind: agent.KindBusy, Step: "store", Message: "it is held", Hint: "wait"}
	if status, _, stderr := b.clove("run", "--", "true"); status != agent.ExitStartFailed || stderr != "clove: store: it is held\nhint: wait\n" {
		t.Errorf("%d, %q", status, stderr)
	}
}

func number(n int64) *int64 { return &n }

func TestEndings(t *testing.T) {
	hit := func(name string, value int64, peak *int64) *agent.LimitHit {
		return &agent.LimitHit{Name: name, Value: value, Peak: peak}
	}
	for _, c := range []struct {
		record agent.Record
		want   []string
	}{
		{agent.Record{Status: agent.StatusExited}, nil},
		{agent.Record{Status: agent.StatusExited, ExitCode: 1}, nil},
		{agent.Record{Status: agent.StatusSignaled, ExitCode: 139}, nil},
		{agent.Record{Status: agent.StatusStartFailed, ExitCode: 125}, nil},
		{agent.Record{Status: agent.StatusOOM, ExitCode: 137, Limit: hit("memory", 256<<20, number(255<<20))},
			[]string{"memory limit of 256MiB reached (peak 255MiB): raise --memory, or let the agent hold less at once"}},
		{agent.Record{Status: agent.StatusOOM, ExitCode: 137, Limit: hit("host-memory", 512<<20, number(94<<20))},
			[]string{"out of memory below the limit of 512MiB (peak 94MiB): the host had no more, for all agents together or for anything; run fewer agents at once, let them hold less, or raise memory_share in cloved's configuration"}},
		{agent.Record{Status: agent.StatusOOM, ExitCode: 137, Limit: hit("memory", 256<<20, nil)},
			[]string{"memory limit of 256MiB reached: raise --memory, or let the agent hold less at once"}},
		{agent.Record{Status: agent.StatusOOM, ExitCode: 137, Limit: hit("sockets", 16<<20, number(20<<20))},
			[]string{"more than 16MiB, a quarter of the memory limit, waited unread in sockets (peak 20MiB): raise --memory, or let the agent read what is sent to it"}},
		{agent.Record{Status: agent.StatusTimeout, ExitCode: 124, Limit: hit("wall-clock", 1500, number(1502))},
			[]string{"wall clock limit of 1.5s reached (peak 1.502s): raise --timeout, or let the agent finish sooner"}},
		{agent.Record{Status: agent.StatusCPUTime, ExitCode: 124, Limit: hit("cpu-time", 60000, number(60010))},
			[]string{"CPU time limit of 1m0s reached (peak 1m0.01s): raise --cpu-time, or let the agent compute less"}},
		{agent.Record{Status: agent.StatusOutputLimit, ExitCode: 137, Limit: hit("output", 1024, number(2048))},
			[]string{"output limit of 1KiB reached (peak 2KiB): raise --output-limit, or let the agent write to a file"}},
		{agent.Record{Status: agent.StatusDiskFull, ExitCode: 1, Limit: hit("disk", 1<<30, nil)},
			[]string{"disk limit of 1GiB reached: raise --disk, or let the agent remove what it no longer needs"}},
		{agent.Record{Status: agent.StatusBudget, ExitCode: 137, Limit: hit("tokens", 1000, number(1050))},
			[]string{"budget of 1000 tokens spent (peak 1050): give more with --budget tokens=2000, or let the agent use less"}},
		{agent.Record{Status: agent.StatusBudget, ExitCode: 137, Limit: hit("tokens", 1000, number(950))},
			[]string{"budget of 1000 tokens has less left than the agent wanted to use (peak 950): give more with --budget tokens=2000, or let the agent use less"}},
		{agent.Record{Status: agent.StatusBudget, ExitCode: 137, Limit: &agent.LimitHit{Name: "cpu_ms", Value: 1000, Peak: number(1050), Account: "1000/ns:acme"}},
			[]string{"budget of 1s of cpu_ms in 1000/ns:acme spent (peak 1.05s): give more with clove budget set 1000/ns:acme cpu_ms=2s, or clove budget reset 1000/ns:acme cpu_ms, or let the agent use less"}},
		{agent.Record{Status: agent.StatusBudget, ExitCode: 137, Limit: &agent.LimitHit{Name: "cost_micros", Value: 500_000, Peak: number(470_000), Used: 470_000, Wanted: 40_500}},
			[]string{"budget of 0.5usd: 0.47usd are spent, and the next call would have reserved at least 0.0405usd: give more with --budget cost=1usd, or let the agent use less"}},
		{agent.Record{Status: agent.StatusBudget, ExitCode: 137, Limit: &agent.LimitHit{Name: "tokens", Value: 20_000, Peak: number(25_000), Used: 10, Wanted: 90_000, Period: "day"}},
			[]string{"budget of 20000 tokens: 10 are spent, and the next call would have reserved at least 90000: give more with --budget tokens=90010/day, or let the agent use less"}},
		{agent.Record{Status: agent.StatusKilled, ExitCode: 137}, []string{"killed: on request, or because its supervisor ended"}},
		{agent.Record{Status: agent.StatusPolicyKill, ExitCode: 137, Policy: agent.Policy{Name: "p"}, Denials: []agent.Denial{{Kind: "network", Target: "a:1", Rule: "deny"}}},
			[]string{"ended by --on-denial: network a:1 (deny); --allow it if it is meant to be"}},
		{agent.Record{Status: agent.StatusPolicyKill, ExitCode: 137, Policy: agent.Policy{Name: "p"}},
			[]string{"ended by --on-denial: calls were refused; clove audit query shows them"}},
		{agent.Record{Status: agent.StatusExited, ExitCode: 1, Events: agent.Events{PidsMax: number(7)}},
			[]string{"pids limit of 512 refused 7 forks: raise --pids-limit, or let the agent start fewer processes and threads"}},
		{agent.Record{Status: agent.StatusExited, ExitCode: 1, Events: agent.Events{PidsMax: number(1)}},
			[]string{"pids limit of 512 refused 1 fork: raise --pids-limit, or let the agent start fewer processes and threads"}},
		{agent.Record{Status: agent.StatusExited, Events: agent.Events{PidsMax: number(7)}}, nil},
		{agent.Record{Status: agent.StatusExited, ExitCode: 1, Events: agent.Events{PidsMax: number(0)}}, nil},
	} {
		got := ending(c.record, agent.Limits{Pids: 512})
		if strings.Join(got, "\n") != strings.Join(c.want, "\n") {
			t.Errorf("%+v:\n%q, want\n%q", c.record, got, c.want)
		}
	}
}

func TestTheEndingIsShown(t *testing.T) {
	b := newBench(t)
	b.backend.record = agent.Record{Status: agent.StatusOOM, ExitCode: 137, Limit: &agent.LimitHit{Value: 1 << 20}}
	if _, _, stderr := b.clove("run", "--", "true"); !strings.HasPrefix(stderr, "clove: memory limit of 1MiB reached") || strings.Count(stderr, "\n") != 1 {
		t.Errorf("%q", stderr)
	}
}

// clove resume reaches detached runs only: a pause in the foreground would be for ever.
func TestRunPausesForRefusalsDetachedOnly(t *testing.T) {
	b := newBench(t)
	b.cloved()
	status, _, stderr := b.clove("run", "--on-denial", "pause", "--", "true")
	if status != agent.ExitStartFailed || !strings.Contains(stderr, "--on-denial") || !strings.Contains(stderr, "hint: start it with run -d") {
		t.Errorf("%d, %s", status, stderr)
	}
	for _, what := range []string{"end", "end-after:2", "deny"} {
		if status, _, stderr := b.clove("run", "--on-denial", what, "--", "true"); status != 0 {
			t.Errorf("%s: %d, %s", what, status, stderr)
		}
	}
}
