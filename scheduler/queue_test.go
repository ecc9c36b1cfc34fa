package scheduler

import (
	"slices"
	"strings"
	"testing"
	"time"

	"clove.run/clove/agent"
)

var noon = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)

// queuedRun returns a run that joined the queue so many seconds after noon.
func queuedRun(name string, joined int, change func(*agent.Run)) agent.Run {
	run := agent.Run{Spec: agent.Spec{ID: agent.ID(name), Name: name, Limits: agent.Limits{MemoryBytes: 100 << 20}}, State: agent.StateQueued,
		Queue: agent.QueueState{Since: noon.Add(time.Duration(joined) * time.Second)}}
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

func TestQueue(t *testing.T) {
	t.Parallel()
	memory := func(mib int64) func(*agent.Run) { return func(r *agent.Run) { r.Spec.Limits.MemoryBytes = mib << 20 } }
	priority := func(p int) func(*agent.Run) { return func(r *agent.Run) { r.Spec.Priority = p } }
	due := func(seconds int) func(*agent.Run) {
		return func(r *agent.Run) { r.Queue.NotBefore = noon.Add(time.Duration(seconds) * time.Second) }
	}
	for _, c := range []struct {
		what    string
		queue   Queue
		runs    []agent.Run
		start   string // names, in order
		reasons string // name: part of the reason; …
	}{
		{"first come, first served", Queue{AtOnce: 9}, []agent.Run{queuedRun("b", 2, nil), queuedRun("a", 1, nil)}, "a b", ""},
		{"priority goes first", Queue{AtOnce: 9}, []agent.Run{queuedRun("a", 1, nil), queuedRun("b", 2, priority(1))}, "b a", ""},
		{"starts are ramped", Queue{AtOnce: 2}, []agent.Run{queuedRun("a", 1, nil), queuedRun("b", 2, nil), queuedRun("s", 0, in(agent.StateStarting))}, "a", "b: 2 others"},
		{"each has a reserve besides what all use", Queue{AtOnce: 9, Memory: Memory{Limit: 250 << 20, Used: 210 << 20}}, []agent.Run{queuedRun("r", 0, in(agent.StateRunning)), queuedRun("a", 1, nil), queuedRun("b", 2, nil)}, "a", "b: use 210 MiB and have 32 MiB in reserve, of 250 MiB"},
		{"the host has too little", Queue{AtOnce: 9, Memory: Memory{Limit: 250 << 20, Available: 10 << 20, Floor: 20 << 20}}, []agent.Run{queuedRun("a", 1, nil), queuedRun("b", 2, nil)}, "", "a: host has 10 MiB available, and needs 20 MiB; b: behind a"},
		{"without a limit nothing waits for memory", Queue{AtOnce: 9, Memory: Memory{Used: 250 << 20, Available: 10 << 20, Floor: 20 << 20}}, []agent.Run{queuedRun("a", 1, nil)}, "a", ""},
		{"the ended hold none", Queue{AtOnce: 9, Memory: Memory{Limit: 100 << 20}}, []agent.Run{queuedRun("e", 0, endedWith(0)), queuedRun("a", 1, nil)}, "a", ""},
		{"a small one does not overtake", Queue{AtOnce: 9, Memory: Memory{Limit: 250 << 20, Used: 230 << 20}}, []agent.Run{queuedRun("r", 0, in(agent.StateRunning)), queuedRun("big", 1, memory(200)), queuedRun("small", 2, memory(10))}, "", "big: wants 200; small: behind big"},
		{"a delay holds up no other run", Queue{AtOnce: 9}, []agent.Run{queuedRun("a", 1, due(60)), queuedRun("b", 2, nil)}, "b", "a: starts at"},
		{"a delay that is over", Queue{AtOnce: 9}, []agent.Run{queuedRun("a", 1, due(-1))}, "a", ""},
		{"drained", Queue{AtOnce: 9, Draining: true}, []agent.Run{queuedRun("a", 1, nil)}, "", "a: maintenance"},
		{"after a panic", Queue{AtOnce: 9, Draining: true, Panic: "a leak"}, []agent.Run{queuedRun("a", 1, nil)}, "", "a: nothing starts after clove panic (a leak), until clove panic --clear"},
		{"after one that runs", Queue{AtOnce: 9}, []agent.Run{queuedRun("db", 0, in(agent.StateRunning)), queuedRun("a", 1, after("db"))}, "a", ""},
		{"after one that succeeded", Queue{AtOnce: 9}, []agent.Run{queuedRun("db", 0, endedWith(0)), queuedRun("a", 1, after("db"))}, "a", ""},
		{"after one that failed", Queue{AtOnce: 9}, []agent.Run{queuedRun("db", 0, endedWith(1)), queuedRun("a", 1, after("db"))}, "", "a: which failed: restart that"},
		{"after one that starts", Queue{AtOnce: 9}, []agent.Run{queuedRun("db", 0, in(agent.StateStarting)), queuedRun("a", 1, after("db"))}, "", "a: is starting"},
		{"after one that is gone", Queue{AtOnce: 9}, []agent.Run{queuedRun("a", 1, after("db"))}, "", "a: not exist"},
		{"after each other", Queue{AtOnce: 9}, []agent.Run{queuedRun("a", 1, after("b")), queuedRun("b", 2, after("a"))}, "", "a: is queued; b: is queued"},
		{"after a schedule's run that succeeded", Queue{AtOnce: 9}, []agent.Run{queuedRun("db", 0, func(r *agent.Run) {
			r.Spec.Schedule, r.Queue.Scheduled, r.Queue.Settled, r.Previous = "CRON_TZ=UTC @daily", true, noon, &agent.Record{}
		}), queuedRun("a", 1, after("db"))}, "a", "db: its schedule starts it at 2030-01-02T00:00:00Z"},
		{"a run that can never fit holds up no other", Queue{AtOnce: 9, Memory: Memory{Limit: 250 << 20}}, []agent.Run{queuedRun("huge", 1, memory(300)), queuedRun("a", 2, nil)}, "a", "huge: may have 250 MiB"},
		{"a run that has waited goes first", Queue{AtOnce: 9}, []agent.Run{queuedRun("old", -11*60, nil), queuedRun("new", 0, priority(10))}, "old new", ""},
		{"a run that has not waited long does not", Queue{AtOnce: 9}, []agent.Run{queuedRun("old", -9*60, nil), queuedRun("new", 0, priority(10))}, "new old", ""},
		{"a delay is no waiting", Queue{AtOnce: 9}, []agent.Run{queuedRun("old", -11*60, due(-30)), queuedRun("new", 0, priority(10))}, "new old", ""},
		{"the foreground counts", Queue{AtOnce: 9, Memory: Memory{Limit: 100 << 20, Used: 80 << 20}}, []agent.Run{queuedRun("f", 0, in(agent.StateRunning)), queuedRun("a", 1, nil)}, "", "a: 16 MiB in reserve, of 100 MiB"},
	} {
		c.queue.Now = noon
		d := c.queue.Decide(c.runs)
		var names []string
		for _, run := range d.Start {
			names = append(names, run.Spec.Name)
		}
		if got := strings.Join(names, " "); got != c.start {
			t.Errorf("%s: starts %q, want %q", c.what, got, c.start)
		}
		wanted := 0
		for _, part := range strings.Split(c.reasons, "; ") {
			if name, text, some := strings.Cut(part, ": "); some {
				wanted++
				if !strings.Contains(d.Waiting[agent.ID(name)].Reason, text) {
					t.Errorf("%s: %s waits because %q, want %q", c.what, name, d.Waiting[agent.ID(name)].Reason, text)
				}
			}
		}
		if len(d.Waiting) != wanted {
			t.Errorf("%s: reasons %v", c.what, d.Waiting)
		}
	}
}

// 18 default agents of 1 GiB, idle, once filled a host of 24 GiB.
func TestIdleAgentsLeaveRoomForOthers(t *testing.T) {
	t.Parallel()
	const gib, idle = 1 << 30, 16 << 20
	var runs []agent.Run
	for range 100 {
		runs = append(runs, queuedRun("idle", 0, in(agent.StateRunning)))
		runs[len(runs)-1].Spec.Limits.MemoryBytes = gib
	}
	next := queuedRun("next", 1, func(r *agent.Run) { r.Spec.Limits.MemoryBytes = gib })
	m := Memory{Limit: 24 * gib * 8 / 10, Used: int64(len(runs)) * idle, Available: 12 * gib, Floor: 24 * gib / 16}
	if d := (Queue{Now: noon, AtOnce: 1, Memory: m}).Decide(append(runs, next)); len(d.Start) != 1 {
		t.Errorf("beside 100 idle agents it waits: %v", d.Waiting)
	}
	// The use of the same agents counts, not only their reserve.
	m.Used = 18 * gib
	d := (Queue{Now: noon, AtOnce: 1, Memory: m}).Decide(append(runs, next))
	if wait := d.Waiting["next"]; wait.For != ForMemory || !d.Wake.Equal(noon.Add(memoryPause)) {
		t.Errorf("beside 100 busy agents: %+v, asks again at %v", wait, d.Wake)
	}
}

func TestQueueWakeAtTheNextDelay(t *testing.T) {
	t.Parallel()
	var runs []agent.Run
	for i, seconds := range []int{90, 30, 60} {
		runs = append(runs, queuedRun(string(rune('a'+i)), i, func(r *agent.Run) { r.Queue.NotBefore = noon.Add(time.Duration(seconds) * time.Second) }))
	}
	if d := (Queue{Now: noon, AtOnce: 1}).Decide(runs); !d.Wake.Equal(noon.Add(30 * time.Second)) {
		t.Errorf("wakes at %v", d.Wake)
	}
	if d := (Queue{Now: noon, AtOnce: 1}).Decide(nil); !d.Wake.IsZero() {
		t.Errorf("wakes at %v for nothing", d.Wake)
	}
}

func TestRestartPolicies(t *testing.T) {
	t.Parallel()
	run := func(policy agent.RestartPolicy, maximum, code, restarts int, change func(*agent.Run)) agent.Run {
		r := queuedRun("a", 0, endedWith(code))
		r.Spec.Restart, r.Queue.Restarts, r.Record.Ended = agent.Restart{Policy: policy, Max: maximum}, restarts, noon
		if change != nil {
			change(&r)
		}
		return r
	}
	for _, c := range []struct {
		what string
		run  agent.Run
		want nextStart
	}{
		{"none", run("", 0, 1, 0, nil), nextStart{}},
		{"never", run(agent.RestartNever, 0, 1, 0, nil), nextStart{}},
		{"on failure, and it failed", run(agent.RestartOnFailure, 0, 1, 0, nil), nextStart{again: true, restarts: 1, notBefore: noon.Add(time.Second)}},
		{"on failure, and it did not", run(agent.RestartOnFailure, 0, 0, 0, nil), nextStart{}},
		{"always", run(agent.RestartAlways, 0, 0, 2, nil), nextStart{again: true, restarts: 3, notBefore: noon.Add(4 * time.Second)}},
		{"the last of them", run(agent.RestartAlways, 3, 1, 2, nil), nextStart{again: true, restarts: 3, notBefore: noon.Add(4 * time.Second)}},
		{"one too many", run(agent.RestartAlways, 3, 1, 3, nil), nextStart{giveUp: true}},
		{"given up before", run(agent.RestartAlways, 3, 1, 3, func(r *agent.Run) { r.Queue.GivenUp = true }), nextStart{}},
		{"a user stopped it", run(agent.RestartAlways, 0, 137, 0, func(r *agent.Run) { r.Queue.StopAsked = true }), nextStart{}},
		{"it ran for long", run(agent.RestartAlways, 3, 1, 3, func(r *agent.Run) { r.Record.WallMS = steady.Milliseconds() }), nextStart{again: true, restarts: 1, notBefore: noon.Add(time.Second)}},
		{"it was idle", run(agent.RestartAlways, 0, 0, 0, func(r *agent.Run) { r.Record.Status = agent.StatusIdle }), nextStart{}},
		{"it lives", run(agent.RestartAlways, 0, 1, 0, in(agent.StateRunning)), nextStart{}},
	} {
		if got := nextStartOf(&c.run); got != c.want {
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
	if backoff(1<<30) != MaxBackoff {
		t.Error("many restarts wait too little")
	}
}

// A bare name in --after means a run of the same owner: another user's run of that name is not
// waited for, and its state does not show. Root's runs may wait for any user's run, named as
// UID/NAME.
func TestAfterARunOfAnothers(t *testing.T) {
	t.Parallel()
	waiting := agent.Run{State: agent.StateQueued, Owner: agent.Owner{UID: 1000}}
	waiting.Spec.ID, waiting.Spec.Name, waiting.Spec.After = agent.NewID(), "mine", []string{"db"}
	first := agent.Run{State: agent.StateRunning, Owner: agent.Owner{UID: 1000}}
	first.Spec.ID, first.Spec.Name = agent.NewID(), "db"
	decide := func() Decision {
		return Queue{Now: time.Now(), AtOnce: 8}.Decide([]agent.Run{waiting, first})
	}
	if d := decide(); len(d.Start) != 1 {
		t.Fatalf("the control: %v", d.Waiting)
	}
	first.Owner.UID = 1001
	if d := decide(); len(d.Start) != 0 || !strings.Contains(d.Waiting[waiting.Spec.ID].Reason, "does not exist") {
		t.Errorf("behind another's: %+v", d)
	}
	waiting.Owner.UID = 0
	if d := decide(); len(d.Start) != 0 {
		t.Error("root's bare name means another user's run")
	}
	waiting.Spec.After = []string{"1001/db"}
	if d := decide(); len(d.Start) != 1 {
		t.Errorf("root's: %v", d.Waiting)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// The memory of a run that an agent started is a part of that agent's: it neither waits for memory, nor
// holds others up, nor counts. The control is the same run without a parent.
func TestAChildHasItsParentsMemory(t *testing.T) {
	t.Parallel()
	const mib = 1 << 20
	parent := agent.Run{Spec: agent.Spec{ID: agent.NewID(), Name: "parent"}, State: agent.StateRunning}
	parent.Spec.Limits.MemoryBytes = 800 * mib
	child := agent.Run{Spec: agent.Spec{ID: agent.NewID(), Name: "child"}, State: agent.StateQueued, Parent: parent.Spec.ID}
	child.Spec.Limits.MemoryBytes = 800 * mib
	q := Queue{Now: time.Now(), AtOnce: 4, Memory: Memory{Limit: 810 * mib, Used: 700 * mib, Available: 1 << 40}}
	if d := q.Decide([]agent.Run{parent, child}); len(d.Start) != 1 {
		t.Errorf("%+v", d.Waiting)
	}
	live := child
	live.State = agent.StateRunning
	if with, without := Reserves([]agent.Run{parent, live}), Reserves([]agent.Run{parent}); with != without {
		t.Errorf("%d, %d", with, without)
	}
	child.Parent = ""
	if d := q.Decide([]agent.Run{parent, child}); d.Waiting[child.Spec.ID].For != ForMemory {
		t.Errorf("control: %+v", d)
	}
}
