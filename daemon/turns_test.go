package daemon

import (
	"slices"
	"strings"
	"testing"
	"time"

	"clove.run/clove/agent"
)

var noon = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)

// queuedRun joined the queue so many seconds after noon.
func queuedRun(name string, joined int, change func(*agent.Run)) agent.Run {
	run := agent.Run{Spec: agent.Spec{ID: agent.ID(name), Name: name, Limits: agent.Limits{MemoryBytes: 100 << 20}}, State: agent.StateQueued,
		Turn: agent.Turn{Since: noon.Add(time.Duration(joined) * time.Second)}}
	if change != nil {
		change(&run)
	}
	return run
}

func in(state agent.State) func(*agent.Run) { return func(r *agent.Run) { r.State = state } }

func endedWith(code int) func(*agent.Run) {
	return func(r *agent.Run) { r.State, r.Record = agent.StateEnded, &agent.Record{ExitCode: code} }
}

func after(names ...string) func(*agent.Run) { return func(r *agent.Run) { r.Spec.After = names } }

func TestTurns(t *testing.T) {
	t.Parallel()
	memory := func(mib int64) func(*agent.Run) { return func(r *agent.Run) { r.Spec.Limits.MemoryBytes = mib << 20 } }
	priority := func(p int) func(*agent.Run) { return func(r *agent.Run) { r.Spec.Priority = p } }
	due := func(seconds int) func(*agent.Run) {
		return func(r *agent.Run) { r.Turn.NotBefore = noon.Add(time.Duration(seconds) * time.Second) }
	}
	for _, c := range []struct {
		what    string
		turns   turns
		runs    []agent.Run
		start   string // names, in order
		reasons string // name: part of the reason; …
	}{
		{"first come, first served", turns{atOnce: 9}, []agent.Run{queuedRun("b", 2, nil), queuedRun("a", 1, nil)}, "a b", ""},
		{"priority goes first", turns{atOnce: 9}, []agent.Run{queuedRun("a", 1, nil), queuedRun("b", 2, priority(1))}, "b a", ""},
		{"starts are ramped", turns{atOnce: 2}, []agent.Run{queuedRun("a", 1, nil), queuedRun("b", 2, nil), queuedRun("s", 0, in(agent.StateStarting))}, "a", "b: 2 others"},
		{"memory is promised once", turns{atOnce: 9, memoryBytes: 250 << 20}, []agent.Run{queuedRun("r", 0, in(agent.StateRunning)), queuedRun("a", 1, nil), queuedRun("b", 2, nil)}, "a", "b: 200 of 250 MiB"},
		{"the ended hold none", turns{atOnce: 9, memoryBytes: 100 << 20}, []agent.Run{queuedRun("e", 0, endedWith(0)), queuedRun("a", 1, nil)}, "a", ""},
		{"a small one does not overtake", turns{atOnce: 9, memoryBytes: 250 << 20}, []agent.Run{queuedRun("r", 0, in(agent.StateRunning)), queuedRun("big", 1, memory(200)), queuedRun("small", 2, memory(10))}, "", "big: wants 200; small: behind big"},
		{"a delay holds up nobody", turns{atOnce: 9}, []agent.Run{queuedRun("a", 1, due(60)), queuedRun("b", 2, nil)}, "b", "a: starts at"},
		{"a delay that is over", turns{atOnce: 9}, []agent.Run{queuedRun("a", 1, due(-1))}, "a", ""},
		{"drained", turns{atOnce: 9, draining: true}, []agent.Run{queuedRun("a", 1, nil)}, "", "a: maintenance"},
		{"after one that runs", turns{atOnce: 9}, []agent.Run{queuedRun("db", 0, in(agent.StateRunning)), queuedRun("a", 1, after("db"))}, "a", ""},
		{"after one that succeeded", turns{atOnce: 9}, []agent.Run{queuedRun("db", 0, endedWith(0)), queuedRun("a", 1, after("db"))}, "a", ""},
		{"after one that failed", turns{atOnce: 9}, []agent.Run{queuedRun("db", 0, endedWith(1)), queuedRun("a", 1, after("db"))}, "", "a: which failed: restart that"},
		{"after one that starts", turns{atOnce: 9}, []agent.Run{queuedRun("db", 0, in(agent.StateStarting)), queuedRun("a", 1, after("db"))}, "", "a: is starting"},
		{"after one that is gone", turns{atOnce: 9}, []agent.Run{queuedRun("a", 1, after("db"))}, "", "a: not exist"},
		{"after each other", turns{atOnce: 9}, []agent.Run{queuedRun("a", 1, after("b")), queuedRun("b", 2, after("a"))}, "", "a: is queued; b: is queued"},
		{"after a schedule's run that succeeded", turns{atOnce: 9}, []agent.Run{queuedRun("db", 0, func(r *agent.Run) {
			r.Spec.Schedule, r.Turn.Scheduled, r.Turn.Settled, r.Previous = "CRON_TZ=UTC @daily", true, noon, &agent.Record{}
		}), queuedRun("a", 1, after("db"))}, "a", "db: its schedule starts it at 2030-01-02T00:00:00Z"},
		{"what can never fit holds up nobody", turns{atOnce: 9, memoryBytes: 250 << 20}, []agent.Run{queuedRun("huge", 1, memory(300)), queuedRun("a", 2, nil)}, "a", "huge: may have 250 MiB"},
		{"who has waited goes first", turns{atOnce: 9}, []agent.Run{queuedRun("old", -11*60, nil), queuedRun("new", 0, priority(10))}, "old new", ""},
		{"who has not waited long does not", turns{atOnce: 9}, []agent.Run{queuedRun("old", -9*60, nil), queuedRun("new", 0, priority(10))}, "new old", ""},
		{"a delay is no waiting", turns{atOnce: 9}, []agent.Run{queuedRun("old", -11*60, due(-30)), queuedRun("new", 0, priority(10))}, "new old", ""},
		{"the foreground counts", turns{atOnce: 9, memoryBytes: 100 << 20}, []agent.Run{queuedRun("f", 0, in(agent.StateRunning)), queuedRun("a", 1, nil)}, "", "a: 100 of 100"},
	} {
		c.turns.now = noon
		d := c.turns.decide(c.runs)
		var names []string
		for _, run := range d.start {
			names = append(names, run.Spec.Name)
		}
		if got := strings.Join(names, " "); got != c.start {
			t.Errorf("%s: starts %q, want %q", c.what, got, c.start)
		}
		wanted := 0
		for _, part := range strings.Split(c.reasons, "; ") {
			if name, text, some := strings.Cut(part, ": "); some {
				wanted++
				if !strings.Contains(d.reasons[agent.ID(name)], text) {
					t.Errorf("%s: %s waits because %q, want %q", c.what, name, d.reasons[agent.ID(name)], text)
				}
			}
		}
		if len(d.reasons) != wanted {
			t.Errorf("%s: reasons %v", c.what, d.reasons)
		}
	}
}

func TestTurnsWakeAtTheNextDelay(t *testing.T) {
	t.Parallel()
	var runs []agent.Run
	for i, seconds := range []int{90, 30, 60} {
		runs = append(runs, queuedRun(string(rune('a'+i)), i, func(r *agent.Run) { r.Turn.NotBefore = noon.Add(time.Duration(seconds) * time.Second) }))
	}
	if d := (turns{now: noon, atOnce: 1}).decide(runs); !d.wake.Equal(noon.Add(30 * time.Second)) {
		t.Errorf("wakes at %v", d.wake)
	}
	if d := (turns{now: noon, atOnce: 1}).decide(nil); !d.wake.IsZero() {
		t.Errorf("wakes at %v for nothing", d.wake)
	}
}

func TestRestartPolicies(t *testing.T) {
	t.Parallel()
	run := func(policy agent.RestartPolicy, maximum, code, restarts int, change func(*agent.Run)) agent.Run {
		r := queuedRun("a", 0, endedWith(code))
		r.Spec.Restart, r.Turn.Restarts, r.Record.Ended = agent.Restart{Policy: policy, Max: maximum}, restarts, noon
		if change != nil {
			change(&r)
		}
		return r
	}
	for _, c := range []struct {
		what string
		run  agent.Run
		want verdict
	}{
		{"none", run("", 0, 1, 0, nil), verdict{}},
		{"never", run(agent.RestartNever, 0, 1, 0, nil), verdict{}},
		{"on failure, and it failed", run(agent.RestartOnFailure, 0, 1, 0, nil), verdict{again: true, restarts: 1, notBefore: noon.Add(time.Second)}},
		{"on failure, and it did not", run(agent.RestartOnFailure, 0, 0, 0, nil), verdict{}},
		{"always", run(agent.RestartAlways, 0, 0, 2, nil), verdict{again: true, restarts: 3, notBefore: noon.Add(4 * time.Second)}},
		{"the last of them", run(agent.RestartAlways, 3, 1, 2, nil), verdict{again: true, restarts: 3, notBefore: noon.Add(4 * time.Second)}},
		{"one too many", run(agent.RestartAlways, 3, 1, 3, nil), verdict{giveUp: true}},
		{"given up before", run(agent.RestartAlways, 3, 1, 3, func(r *agent.Run) { r.Turn.GivenUp = true }), verdict{}},
		{"somebody stopped it", run(agent.RestartAlways, 0, 137, 0, func(r *agent.Run) { r.Turn.StopAsked = true }), verdict{}},
		{"it ran for long", run(agent.RestartAlways, 3, 1, 3, func(r *agent.Run) { r.Record.WallMS = steady.Milliseconds() }), verdict{again: true, restarts: 1, notBefore: noon.Add(time.Second)}},
		{"it lives", run(agent.RestartAlways, 0, 1, 0, in(agent.StateRunning)), verdict{}},
	} {
		if got := judge(c.run); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.what, got, c.want)
		}
	}
}

func TestBackoffDoublesToItsBound(t *testing.T) {
	t.Parallel()
	var got []time.Duration
	for n := range 12 {
		got = append(got, backoff(n))
	}
	want := []time.Duration{1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300, 300}
	for i := range want {
		want[i] *= time.Second
	}
	if !slices.Equal(got, want) {
		t.Errorf("%v", got)
	}
	if backoff(1<<30) != maxBackoff {
		t.Error("many restarts wait too little")
	}
}

// A name that has become somebody else's is one that does not exist: neither
// is the other run waited for, nor is told how it does. Root's runs may wait
// for anybody's.
func TestAfterARunOfAnothers(t *testing.T) {
	t.Parallel()
	waiting := agent.Run{State: agent.StateQueued, Owner: agent.Owner{UID: 1000}}
	waiting.Spec.ID, waiting.Spec.Name, waiting.Spec.After = agent.NewID(), "mine", []string{"db"}
	first := agent.Run{State: agent.StateRunning, Owner: agent.Owner{UID: 1000}}
	first.Spec.ID, first.Spec.Name = agent.NewID(), "db"
	decide := func() decision {
		return turns{now: time.Now(), atOnce: 8}.decide([]agent.Run{waiting, first})
	}
	if d := decide(); len(d.start) != 1 {
		t.Fatalf("the control: %v", d.reasons)
	}
	first.Owner.UID = 1001
	if d := decide(); len(d.start) != 0 || !strings.Contains(d.reasons[waiting.Spec.ID], "does not exist") {
		t.Errorf("behind another's: %+v", d)
	}
	waiting.Owner.UID = 0
	if d := decide(); len(d.start) != 1 {
		t.Errorf("root's: %v", d.reasons)
	}
}
