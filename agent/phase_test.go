package agent

import (
	"encoding/json"
	"maps"
	"slices"
	"testing"
	"time"
)

// stored are the forms that a run of each phase has in the store: a live one
// that is marked for stop may be in two states, and an end forgets no mark.
func stored() map[Phase][]Run {
	run := func(s State, t Turn) Run { return Run{State: s, Turn: t, Spec: Spec{Schedule: "@daily"}} }
	return map[Phase][]Run{
		PhaseScheduled: {run(StateQueued, Turn{Scheduled: true})},
		PhaseWaiting:   {run(StateQueued, Turn{})},
		PhaseLeaving:   {run(StateQueued, Turn{StopAsked: true}), run(StateQueued, Turn{StopAsked: true, Scheduled: true})},
		PhaseStarting:  {run(StateStarting, Turn{})},
		PhaseRunning:   {run(StateRunning, Turn{}), run(StateRunning, Turn{Paused: true})},
		PhaseStopping:  {run(StateStarting, Turn{StopAsked: true}), run(StateRunning, Turn{StopAsked: true, Paused: true})},
		PhaseEnded:     {run(StateEnded, Turn{}), run(StateEnded, Turn{Paused: true})},
		PhaseGivenUp:   {run(StateEnded, Turn{GivenUp: true})},
		PhaseStopped:   {run(StateEnded, Turn{StopAsked: true}), run(StateEnded, Turn{StopAsked: true, GivenUp: true}), run(StateEnded, Turn{StopAsked: true, Scheduled: true})},
	}
}

// happened are the events as the rest of clove notes them.
var happened = map[Event]func(*Run, time.Time){
	EventDue:       (*Run).Due,
	EventStopAsked: func(r *Run, now time.Time) { r.MarkForStop(Stopped{By: "uid 0", Time: now}) },
	EventGivenUp:   func(r *Run, _ time.Time) { r.GiveUp() },
	EventRequeued:  func(r *Run, now time.Time) { r.RequeueByPolicy(1, now, now) },
	EventScheduled: (*Run).RequeueBySchedule,
	EventRestarted: func(r *Run, now time.Time) { r.Restart(true, now) },
}

// TestEveryPhaseAndEvent walks the whole product: a pair of the table leads to
// the phase that stands there, in the state that the table of states has, and
// any other pair changes no mark.
func TestEveryPhaseAndEvent(t *testing.T) {
	t.Parallel()
	forms := stored()
	for _, p := range Phases {
		for _, e := range PhaseEvents {
			for _, run := range forms[p] {
				if run.Phase() != p {
					t.Fatalf("%+v is %s, want %s", run, run.Phase(), p)
				}
				before := run
				if note := happened[e]; note != nil {
					note(&run, time.Unix(1, 0))
				}
				wanted, found := phases[p][e]
				if !found {
					if _, noted := happened[e]; noted && run.Turn != before.Turn {
						t.Errorf("%s on %s became %+v", p, e, run.Turn)
					}
					continue
				}
				move(&run, e)
				if run.Phase() != wanted {
					t.Errorf("%s (%s) on %s is %s, want %s", p, before.State, e, run.Phase(), wanted)
				}
			}
		}
	}
}

// move does what the store does beside: each way into the queue is one event to it.
func move(run *Run, e Event) {
	if run.State == StateEnded && (e == EventScheduled || e == EventRestarted) {
		e = EventRequeued
	}
	if next, err := run.State.Next(e); err == nil {
		run.State = next
	}
}

// A person can end and restart whatever waits or has ended.
func TestEveryPhaseLeadsToAnother(t *testing.T) {
	t.Parallel()
	for _, p := range Phases {
		if phases[p][EventStopAsked] == "" {
			t.Errorf("%s cannot be stopped", p)
		}
		reached := map[Phase]bool{p: true}
		for range Phases {
			for _, from := range slices.Collect(maps.Keys(reached)) {
				for _, next := range phases[from] {
					reached[next] = true
				}
			}
		}
		if !reached[PhaseWaiting] || !reached[PhaseStopped] {
			t.Errorf("from %s only %v are reached", p, reached)
		}
	}
}

// The phase is derived: its marks are stored under the names that they always had.
func TestPhasesAreStoredAsMarks(t *testing.T) {
	t.Parallel()
	text, err := json.Marshal(Turn{StopAsked: true, GivenUp: true, Paused: true, Fresh: true, Scheduled: true})
	if want := `{"stop_asked":true,"given_up":true,"paused":true,"fresh":true,"scheduled":true}`; err != nil || string(text) != want {
		t.Errorf("%s, %v", text, err)
	}
	for p, runs := range stored() {
		for _, run := range runs {
			var read Run
			if text, err = json.Marshal(run); err == nil {
				err = json.Unmarshal(text, &read)
			}
			if err != nil || read.Phase() != p {
				t.Errorf("%s was stored as %s and reads as %s: %v", p, text, read.Phase(), err)
			}
		}
	}
}
