package main

import (
	"encoding/json"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/methods"
	"clove.run/clove/internal/rpc"
)

// Each command calls its method with the run that was named, and prints the run.
func TestVerbsAsk(t *testing.T) {
	for line, method := range map[string]string{
		"stop one": methods.RunStop.Name, "stop -t 5s one": methods.RunStop.Name, "kill -s HUP one": methods.RunSignal.Name, "pause one": methods.RunPause.Name,
		"resume one": methods.RunResume.Name, "restart one": methods.RunRestart.Name, "restart --fresh one": methods.RunRestart.Name, "rm -f one": methods.RunRemove.Name, "update -m 64M one": methods.RunUpdate.Name,
	} {
		b := newBench(t)
		f := b.cloved()
		f.answer(method, api.Nothing{})
		status, stdout, stderr := b.clove(strings.Fields(line)...)
		var asked struct {
			Run    string
			Signal int
			Grace  *int64 `json:"grace_ns"`
			Force  bool
			Fresh  bool
		}
		f.heard(method, &asked)
		if status != 0 || stdout != "one\n" || stderr != "" || asked.Run != "one" {
			t.Errorf("%s: %d, %q, %q, %+v", line, status, stdout, stderr, asked)
		}
		if strings.Contains(line, "HUP") && asked.Signal != 1 || strings.Contains(line, "5s") && (asked.Grace == nil || *asked.Grace != 5e9) ||
			strings.HasPrefix(line, "rm") && !asked.Force || strings.Contains(line, "--fresh") != asked.Fresh {
			t.Errorf("%s: %+v", line, asked)
		}
	}
}

// Without cloved every command reports that; without a name it reports that.
func TestVerbsRefuse(t *testing.T) {
	for _, verb := range []string{"stop", "kill", "pause", "resume", "restart", "wait", "update -m 64M", "logs", "attach", "top"} {
		b := newBench(t)
		if status, _, stderr := b.clove(append(strings.Fields(verb), "one")...); status != exitFailed || !strings.Contains(stderr, "cloved does not run") {
			t.Errorf("%s: %d, %s", verb, status, stderr)
		}
		if status, _, stderr := b.clove(strings.Fields(verb)...); status != exitFailed || !strings.Contains(stderr, "hint:") {
			t.Errorf("%s without a name: %d, %s", verb, status, stderr)
		}
	}
	for line, says := range map[string]string{
		"kill -s NOPE one": "not a signal", "kill -s 65 one": "not a signal", "stop -t soon one": "not a duration", "update one": "nothing is to change",
		"update --cpus 0 one": "not a number of CPUs", "update --no-rules --allow example.com one": "at the same time", "logs --tail some one": "not a number of lines",
		"logs --since once one": "not a time", "events --after x": "not a number", "attach --detach-keys ctrl-1 one": "not a key", "prune": "--yes",
		"rename one": "2 arguments", "ps --filter colour=red": "not a filter", "ps --filter state=ran": "no state", "rm -f one": "only it can end", "cp a b": "one place", "cp one:relative b": "absolute path", "exec one": "a run and a command", "stats --interval x": "not a duration",
	} {
		b := newBench(t)
		failed := exitFailed
		if strings.HasPrefix(line, "exec") {
			failed = agent.ExitStartFailed // exit status 1 could be the process's own
		}
		if status, _, stderr := b.clove(strings.Fields(line)...); status != failed || !strings.Contains(stderr, says) {
			t.Errorf("%s: %d, %s", line, status, stderr)
		}
	}
}

func TestDrainAsks(t *testing.T) {
	for line, on := range map[string]bool{"drain": true, "drain --undo": false} {
		b := newBench(t)
		f := b.cloved()
		f.answer(methods.Drain.Name, api.Nothing{})
		status, stdout, stderr := b.clove(strings.Fields(line)...)
		asked := api.DrainParams{On: !on}
		f.heard(methods.Drain.Name, &asked)
		if status != 0 || stdout+stderr != "" || asked.On != on {
			t.Errorf("%s: %d, %q, %q, %+v", line, status, stdout, stderr, asked)
		}
	}
}

func TestWaitExitsAsTheLast(t *testing.T) {
	b := newBench(t)
	f := b.cloved()
	f.answer(methods.RunWait.Name, api.WaitResult{Record: agent.Record{ExitCode: 7}})
	if status, stdout, _ := b.clove("wait", "one", "two"); status != 7 || stdout != "7\n7\n" {
		t.Errorf("%d, %q", status, stdout)
	}
}

// Lines go unchanged to the stream that they came from; lost lines are reported.
func TestLogsPrints(t *testing.T) {
	b := newBench(t)
	f := b.cloved()
	f.answers[methods.RunLogs.Name] = func(c *rpc.Conn, _ json.RawMessage) (any, error) {
		for _, line := range []api.LogLine{{LostLines: 3, LostBytes: 9}, {Stream: "stdout", Text: "out"}, {Stream: "stderr", Text: "err"},
			{Stream: "stdout", Bytes: []byte{0xff}, Partial: true}} {
			if err := c.Notify(api.NoteLogLine, api.LogNote{ID: 1, Line: line}); err != nil {
				return nil, err
			}
		}
		many := []api.LogLine{{Stream: "stdout", Text: "go on"}, {Stream: "stderr", Text: "err 2"}, {Stream: "clove", Text: "it ends"}, {Stream: "stdout", Text: "out 2"}}
		return api.Nothing{}, c.Notify(api.NoteLogLine, api.LogNote{ID: 1, Lines: many})
	}
	status, stdout, stderr := b.clove("logs", "one")
	if status != 0 || stdout != "out\n\xffgo on\nout 2\n" || stderr != "clove: 3 lines (9 bytes) are lost here\nerr\nerr 2\nclove: it ends\n" {
		t.Errorf("%d, %q, %q", status, stdout, stderr)
	}
}

func TestEventsPrint(t *testing.T) {
	b := newBench(t)
	f := b.cloved()
	code := 3
	f.answers[methods.EventFollow.Name] = func(c *rpc.Conn, _ json.RawMessage) (any, error) {
		err := c.Notify(api.NoteEvent, api.EventNote{Gap: true, Event: &agent.RunEvent{Sequence: 9, Kind: agent.RunEnded, Name: "web", ID: "aaaaaaaaaaaaaaaa",
			Status: agent.StatusExited, ExitCode: &code, Detail: "a\nb"}})
		return api.EventResult{Last: 9}, err
	}
	status, stdout, stderr := b.clove("events", "--once")
	if status != 0 || !strings.HasPrefix(stdout, "9 ") || !strings.HasSuffix(stdout, ` ended web (aaaaaaaa) exited 3: a\nb`+"\n") || !strings.Contains(stderr, "no longer stored") {
		t.Errorf("%d, %q, %q", status, stdout, stderr)
	}
}

func TestDetachKeys(t *testing.T) {
	keys, err := parseKeys("ctrl-p,ctrl-q")
	if err != nil || string(keys) != "\x10\x11" {
		t.Fatalf("%q, %v", keys, err)
	}
	for _, c := range []struct {
		typed []string
		pass  string
		left  bool
	}{
		{[]string{"abc"}, "abc", false},
		{[]string{"a\x10\x11b"}, "a", true},
		{[]string{"a\x10", "\x11"}, "a", true},
		{[]string{"\x10x"}, "\x10x", false},
		{[]string{"\x10\x10\x11"}, "\x10", true},
		{[]string{"\x10\x10", "\x10\x11"}, "\x10\x10", true},
		{[]string{"\x11"}, "\x11", false},
	} {
		k := keyWatch{keys: keys}
		var pass []byte
		left := false
		for _, typed := range c.typed {
			p, l := k.filter([]byte(typed))
			pass, left = append(pass, p...), left || l
		}
		if string(pass) != c.pass || left != c.left {
			t.Errorf("%q: %q, %v", c.typed, pass, left)
		}
	}
}

func TestSince(t *testing.T) {
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	for text, want := range map[string]time.Time{"": {}, "10m": now.Add(-10 * time.Minute), "2029-01-01T00:00:00Z": now.AddDate(-1, 0, 0)} {
		if got, err := parseSince(text, now); err != nil || !got.Equal(want) {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
}

// Filters are combined with "and"; a filter for a state includes ended runs.
func TestPsFilters(t *testing.T) {
	b := newBench(t)
	run := func(name string, state agent.State, labels map[string]string) agent.Run {
		return agent.Run{Spec: agent.Spec{ID: agent.ID(name + "-id"), Name: name, Labels: labels}, State: state}
	}
	over := run("web-old", agent.StateEnded, map[string]string{"tier": "front"})
	over.Record = &agent.Record{Status: agent.StatusTimeout}
	frozen := run("db", agent.StateRunning, nil)
	frozen.Queue.Paused = true
	b.backend.runs = []agent.Run{run("web", agent.StateRunning, map[string]string{"tier": "front"}), frozen, over}
	for flags, want := range map[string]string{
		"-q": "web-id db-id", "-aq": "web-id db-id web-old-id", "-q --filter name=web": "web-id", "-aq --filter name=web": "web-id web-old-id",
		"-q --filter state=timeout": "web-old-id", "-q --filter state=ended": "web-old-id", "-q --filter state=paused": "db-id", "-q --filter state=running": "web-id db-id",
		"-aq --filter label=tier": "web-id web-old-id", "-q --filter label=tier=front": "web-id", "-q --filter label=tier=back": "", "-aq --filter label=tier --filter state=timeout": "web-old-id",
	} {
		status, stdout, stderr := b.clove(append([]string{"ps"}, strings.Fields(flags)...)...)
		if got := strings.Join(strings.Fields(stdout), " "); status != 0 || got != want {
			t.Errorf("ps %s: %d, %q, %s; want %q", flags, status, got, stderr, want)
		}
	}
}

// Root sees a user's run as OWNER/NAME, which every command accepts; a user sees only their
// own runs.
func TestShown(t *testing.T) {
	theirs, roots := agent.RunName{UID: 1000, Name: "web"}, agent.RunName{Name: "web"}
	want := "1000/web"
	if os.Geteuid() != 0 {
		want = "web"
	}
	if shown(theirs) != want || shown(roots) != "web" {
		t.Errorf("%s, %s", shown(theirs), shown(roots))
	}
	now := time.Now()
	run := agent.Run{Owner: agent.Owner{UID: 1000}, Spec: agent.Spec{ID: "0123456789abcdef", Name: "web"}}
	if row, fields := psRow(run, now), fieldsOf(run, now); row[nameColumn] != want || fields.Names != want {
		t.Errorf("%q, %+v", row, fields)
	}
	if e := (agent.RunEvent{Name: "web", Owner: run.Owner}); !strings.Contains(eventLine(e), " "+want+" (") {
		t.Error(eventLine(e))
	}
	if f := (filter{filterName, want}); !f.matches(run) {
		t.Errorf("%+v does not match", f)
	}
}

// Requests for several runs are sent at the same time, and their results are printed in order.
func TestSeveralAtOnce(t *testing.T) {
	b := newBench(t)
	f := b.cloved()
	var all sync.WaitGroup
	all.Add(3)
	f.answers[methods.RunStop.Name] = func(_ *rpc.Conn, params json.RawMessage) (any, error) {
		all.Done()
		all.Wait() // the other requests arrive before this one is answered
		if strings.Contains(string(params), "bad") {
			return nil, &agent.Error{Kind: agent.KindNotFound, Message: "there is no run"}
		}
		return api.Nothing{}, nil
	}
	status, stdout, stderr := b.clove("stop", "one", "bad", "two")
	if status != exitFailed || stdout != "one\ntwo\n" || !strings.Contains(stderr, "there is no run") {
		t.Errorf("%d, %q, %q", status, stdout, stderr)
	}
}

// A long line comes in pieces and has one timestamp; clove's own lines are not mistaken for
// the agent's.
func TestLogsStampsLines(t *testing.T) {
	b := newBench(t)
	f := b.cloved()
	when := time.Date(2030, 1, 2, 3, 4, 5, 6000, time.UTC)
	f.answers[methods.RunLogs.Name] = func(c *rpc.Conn, _ json.RawMessage) (any, error) {
		for _, line := range []api.LogLine{{Time: when, Stream: "stdout", Text: "be", Partial: true}, {Time: when, Stream: "stdout", Text: "gin"},
			{Time: when, Stream: "clove", Text: "cannot listen"}, {Time: when, Stream: "stdout", Text: "next"}} {
			if err := c.Notify(api.NoteLogLine, api.LogNote{ID: 1, Line: line}); err != nil {
				return nil, err
			}
		}
		return api.Nothing{}, nil
	}
	const stamp = "2030-01-02T03:04:05.000006Z "
	status, stdout, stderr := b.clove("logs", "-t", "one")
	if status != 0 || stdout != stamp+"begin\n"+stamp+"next\n" || stderr != "clove: cannot listen\n" {
		t.Errorf("%d, %q, %q", status, stdout, stderr)
	}
}
