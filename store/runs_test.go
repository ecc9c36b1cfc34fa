package store

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"clove.run/clove/agent"
)

func TestLifeOfARun(t *testing.T) {
	t.Parallel()
	s := openNew(t)
	asked := newRun("solo")
	run, err := s.Begin(asked)
	must(t, err)
	if run.State != agent.StateStarting || run.Lease.IDRange != 0 || run.Lease.BootID != "boot" || run.Created.IsZero() {
		t.Errorf("after Begin: %+v, lease %+v", run, run.Lease)
	}
	if asked.State != "" || asked.Lease == run.Lease {
		t.Error("Begin changed its argument")
	}
	wantStored(t, s, run)

	started := time.Now().UTC()
	run, err = s.Apply(run.Spec.ID, agent.EventStarted, func(r *agent.Run) { r.PID, r.Started = 42, started })
	must(t, err)
	if run.State != agent.StateRunning || run.PID != 42 || !run.Started.Equal(started) {
		t.Errorf("after started: %+v", run)
	}
	wantStored(t, s, run)

	record := recordOf(run.Spec)
	record.ExitCode = 3
	run, err = s.Finish(run.Spec.ID, agent.EventRecorded, record, func(r *agent.Run) { r.Layer = "/layer" })
	must(t, err)
	if run.State != agent.StateEnded || run.Lease != nil || run.PID != 0 || run.Layer != "/layer" || run.Record.ExitCode != 3 {
		t.Errorf("after recorded: %+v", run)
	}
	wantStored(t, s, run)

	must(t, s.Remove(run.Spec.ID))
	_, err = s.Get("solo")
	wantKind(t, err, agent.KindNotFound)
	_, err = s.Begin(newRun("solo"))
	must(t, err)
}

// A run with --rm leaves neither record, name nor lease.
func TestARunWithRemoveIsForgottenAtItsEnd(t *testing.T) {
	t.Parallel()
	s := openNew(t)
	asked := newRun("brief")
	asked.Spec.Remove = true
	run, err := s.Begin(asked)
	must(t, err)
	ended, err := s.Finish(run.Spec.ID, agent.EventRecorded, recordOf(run.Spec), nil)
	must(t, err)
	if ended.State != agent.StateEnded || ended.Record == nil {
		t.Errorf("returned %+v", ended)
	}
	_, err = s.Get("brief")
	wantKind(t, err, agent.KindNotFound)
	live, err := s.Live(everyRun)
	must(t, err)
	if len(live) != 0 {
		t.Errorf("still leased: %+v", live)
	}
}

func wantStored(t *testing.T, s *Store, want agent.Run) {
	t.Helper()
	got, err := s.Get(string(want.Spec.ID))
	must(t, err)
	if !reflect.DeepEqual(got, want) {
		t.Errorf("stored %+v\nreturned %+v", got, want)
	}
}

// Every event is tried in every state, through every method. The table of package agent gives
// the expected result; each event has one method.
func TestEveryStateAndEvent(t *testing.T) {
	t.Parallel()
	paths := map[agent.State][]agent.Event{
		agent.StateQueued:   nil,
		agent.StateStarting: {agent.EventAdmitted},
		agent.StateRunning:  {agent.EventAdmitted, agent.EventStarted},
		agent.StateEnded:    {agent.EventAdmitted, agent.EventLost},
	}
	s := openNew(t)
	s.db.NoSync = true
	for _, state := range agent.States {
		for _, event := range agent.AllEvents {
			next, forbidden := state.Next(event)
			for _, door := range []string{"begin", "apply", "finish", "requeue"} {
				run, err := s.Enqueue(newRun(fmt.Sprintf("%s-%s-%s", state, event, door)))
				must(t, err)
				for _, e := range paths[state] {
					must(t, through(s, run.Spec, e, doorOf(e)))
				}
				err = through(s, run.Spec, event, door)
				allowed := forbidden == nil && doorOf(event) == door
				got, _ := s.Get(string(run.Spec.ID))
				switch {
				case allowed && (err != nil || got.State != next):
					t.Errorf("%s %s by %s: in %s, error %v", state, event, door, got.State, err)
				case !allowed && (err == nil || got.State != state):
					t.Errorf("%s %s by %s: in %s, no error", state, event, door, got.State)
				case forbidden != nil && door != "begin": // for Begin it is another run with that name
					wantKind(t, err, agent.KindConflict)
				}
			}
		}
	}
}

// doorOf returns the one method that stores e.
func doorOf(e agent.Event) string {
	switch e {
	case agent.EventAdmitted:
		return "begin"
	case agent.EventRequeued:
		return "requeue"
	case agent.EventStarted:
		return "apply"
	}
	return "finish"
}

func through(s *Store, spec agent.Spec, e agent.Event, door string) (err error) {
	switch door {
	case "begin":
		if e != agent.EventAdmitted {
			return &agent.Error{Kind: agent.KindConflict, Step: step, Message: "Begin takes no event"}
		}
		_, err = s.Begin(agent.Run{Spec: spec, Lease: &agent.Lease{}})
	case "requeue":
		if e != agent.EventRequeued {
			return &agent.Error{Kind: agent.KindConflict, Step: step, Message: "Requeue takes no event"}
		}
		_, err = s.Requeue(spec.ID, nil)
	case "finish":
		_, err = s.Finish(spec.ID, e, recordOf(spec), nil)
	default:
		_, err = s.Apply(spec.ID, e, nil)
	}
	return err
}

func TestBeginRefuses(t *testing.T) {
	t.Parallel()
	s := openNew(t)
	live, err := s.Begin(newRun("live"))
	must(t, err)
	ended, err := s.Begin(newRun("ended"))
	must(t, err)
	_, err = endRun(s, ended.Spec)
	must(t, err)

	again := newRun("other")
	again.Spec.ID = live.Spec.ID
	recorded := newRun("recorded")
	recorded.Record = &agent.Record{}
	unnamed := newRun("x")
	unnamed.Spec.Name = ""
	noID := newRun("fine")
	noID.Spec.ID = "no id"
	cases := map[string]struct {
		run  agent.Run
		kind agent.Kind
		says string
	}{
		"name of a live run":   {newRun("live"), agent.KindConflict, "is taken by run " + string(live.Spec.ID)},
		"name of an ended run": {newRun("ended"), agent.KindConflict, "clove rm ended"},
		"id of another run":    {again, agent.KindInternal, "exists"},
		"not an id":            {noID, agent.KindInternal, "not an id"},
		"no name":              {unnamed, agent.KindInvalid, "not a name"},
		"another's id as name": {newRun(string(live.Spec.ID)), agent.KindInvalid, "id of another run"},
		"a record already":     {recorded, agent.KindInternal, "record"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := s.Begin(c.run)
			known := wantKind(t, err, c.kind)
			if !strings.Contains(known.Message+known.Hint, c.says) {
				t.Errorf("%q (%s) does not say %q", known.Message, known.Hint, c.says)
			}
			if all, err := s.List(); err != nil || len(all) != 2 {
				t.Errorf("%d runs, %v; want 2", len(all), err)
			}
		})
	}
}

func TestLowestRangeIsLeased(t *testing.T) {
	t.Parallel()
	s := openNew(t)
	var runs []agent.Run
	begin := func(want int) {
		t.Helper()
		run, err := s.Begin(newRun(""))
		must(t, err)
		if run.Lease.IDRange != want {
			t.Errorf("got range %d, want %d", run.Lease.IDRange, want)
		}
		runs = append(runs, run)
	}
	for i := range 4 {
		begin(i)
	}
	for _, i := range []int{2, 0} {
		_, err := s.Finish(runs[i].Spec.ID, agent.EventLost, recordOf(runs[i].Spec), nil)
		must(t, err)
	}
	begin(0)
	begin(2)
	begin(4)
}

func TestAllRangesLeased(t *testing.T) {
	t.Parallel()
	s := openNew(t)
	must(t, s.update(func(tb *tables) error {
		for i := range agent.IDRanges {
			run := newRun("")
			run.State, run.Created, run.Lease.IDRange = agent.StateStarting, time.Unix(1, 0), i
			id := []byte(run.Spec.ID)
			if err := firstOf(tb.put(run), tb.putName(run), tb.leases.Put(rangeKey(i), id)); err != nil {
				return err
			}
		}
		return nil
	}))
	_, err := s.Begin(newRun(""))
	wantKind(t, err, agent.KindBusy)

	all, err := s.List()
	must(t, err)
	_, err = s.Finish(all[0].Spec.ID, agent.EventLost, recordOf(all[0].Spec), nil)
	must(t, err)
	run, err := s.Begin(newRun(""))
	must(t, err)
	if run.Lease.IDRange != all[0].Lease.IDRange {
		t.Errorf("got range %d, the one free is %d", run.Lease.IDRange, all[0].Lease.IDRange)
	}
}

func TestChangeMayNotTouchWhatTheIndexesHold(t *testing.T) {
	t.Parallel()
	changes := map[string]func(*agent.Run){
		"id":     func(r *agent.Run) { r.Spec.ID = agent.NewID() },
		"name":   func(r *agent.Run) { r.Spec.Name = "else" },
		"state":  func(r *agent.Run) { r.State = agent.StateEnded },
		"lease":  func(r *agent.Run) { r.Lease = nil },
		"range":  func(r *agent.Run) { r.Lease.IDRange++ },
		"record": func(r *agent.Run) { r.Record = &agent.Record{} },
	}
	s := openNew(t)
	run, err := s.Begin(newRun(""))
	must(t, err)
	for name, change := range changes {
		t.Run(name, func(t *testing.T) {
			_, err := s.Apply(run.Spec.ID, agent.EventStarted, change)
			wantKind(t, err, agent.KindInternal)
			_, err = s.Finish(run.Spec.ID, agent.EventLost, recordOf(run.Spec), change)
			wantKind(t, err, agent.KindInternal)
			wantStored(t, s, run)
		})
	}
}

func TestFinishRefusesAnothersRecord(t *testing.T) {
	t.Parallel()
	s := openNew(t)
	run, err := s.Begin(newRun(""))
	must(t, err)
	for name, spoil := range map[string]func(*agent.Record){
		"id":            func(r *agent.Record) { r.ID = agent.NewID() },
		"name":          func(r *agent.Record) { r.Name = "else" },
		"no version":    func(r *agent.Record) { r.Version = 0 },
		"later version": func(r *agent.Record) { r.Version = agent.RecordVersion + 1 },
	} {
		record := recordOf(run.Spec)
		spoil(&record)
		if _, err := s.Finish(run.Spec.ID, agent.EventLost, record, nil); agent.KindOf(err) != agent.KindInternal || err == nil {
			t.Errorf("%s: got error %v", name, err)
		}
	}
	wantStored(t, s, run)
}

func TestRemoveRefusesALiveRun(t *testing.T) {
	t.Parallel()
	s := openNew(t)
	run, err := s.Begin(newRun(""))
	must(t, err)
	wantKind(t, s.Remove(run.Spec.ID), agent.KindConflict)
	wantKind(t, s.Remove(agent.NewID()), agent.KindNotFound)
	wantKind(t, s.Remove(""), agent.KindNotFound)
	wantStored(t, s, run)
}

func TestPanicOfAChangeIsItsOwn(t *testing.T) {
	t.Parallel()
	s := openNew(t)
	run, err := s.Begin(newRun(""))
	must(t, err)
	func() {
		defer func() {
			if value := recover(); value != "mine" {
				t.Errorf("recovered %v", value)
			}
		}()
		s.Apply(run.Spec.ID, agent.EventStarted, func(*agent.Run) { panic("mine") })
	}()
	wantStored(t, s, run) // and the store can still be used
	_, err = endRun(s, run.Spec)
	must(t, err)
}
