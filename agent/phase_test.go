package agent

import (
	"encoding/json"
	"maps"
	"slices"
	"testing"
	"time"
)

// Every value, in the order of the diagram.
var (
	allPhases      = []Phase{PhaseScheduled, PhaseWaiting, PhaseLeaving, PhaseStarting, PhaseRunning, PhaseStopping, PhaseEnded, PhaseGivenUp, PhaseStopped}
	allPhaseEvents = slices.Concat(AllEvents, []Event{EventDue, EventStopAsked, EventGivenUp, EventScheduled, EventRestarted})
)

// stored are the forms that a run of each phase has in the store: a live run that is marked
// for stop may be in two states, and an end keeps all marks.
func stored() map[Phase][]Run {
	run := func(s State, t QueueState) Run { return Run{State: s, Queue: t, Spec: Spec{Schedule: "@daily"}} }
	return map[Phase][]Run{
		PhaseScheduled: {run(StateQueued, QueueState{Scheduled: true})},
		PhaseWaiting:   {run(StateQueued, QueueState{})},
		PhaseLeaving:   {run(StateQueued, QueueState{StopAsked: true}), run(StateQueued, QueueState{StopAsked: true, Scheduled: true})},
		PhaseStarting:  {run(StateStarting, QueueState{})},
		PhaseRunning:   {run(StateRunning, QueueState{}), run(StateRunning, QueueState{Paused: true})},
		PhaseStopping:  {run(StateStarting, QueueState{StopAsked: true}), run(StateRunning, QueueState{StopAsked: true, Paused: true})},
		PhaseEnded:     {run(StateEnded, QueueState{}), run(StateEnded, QueueState{Paused: true})},
		PhaseGivenUp:   {run(StateEnded, QueueState{GivenUp: true})},
		PhaseStopped:   {run(StateEnded, QueueState{StopAsked: true}), run(StateEnded, QueueState{StopAsked: true, GivenUp: true}), run(StateEnded, QueueState{StopAsked: true, Scheduled: true})},
	}
}

// happened are the events as the rest of clove stores them.
var happened = map[Event]func(*Run, time.Time){
	EventDue:       (*Run).Due,
	EventStopAsked: func(r *Run, now time.Time) { r.MarkForStop(Stopped{By: "uid 0", Time: now}) },
	EventGivenUp:   func(r *Run, _ time.Time) { r.GiveUp() },
	EventRequeued:  func(r *Run, now time.Time) { r.RequeueByPolicy(1, now, now) },
	EventScheduled: (*Run).RequeueBySchedule,
	EventRestarted: func(r *Run, now time.Time) { r.Restart(true, now) },
}

// TestEveryPhaseAndEvent tries every event in every phase: a pair in the table leads to the
// phase of its row, with the state of the table of states, and any other pair changes no mark.
func TestEveryPhaseAndEvent(t *testing.T) {
	t.Parallel()
	forms := stored()
	for _, p := range allPhases {
		for _, e := range allPhaseEvents {
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
					if _, noted := happened[e]; noted && run.Queue != before.Queue {
						t.Errorf("%s on %s became %+v", p, e, run.Queue)
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

// move also does what the store does: for it, each way into the queue is one event.
func move(run *Run, e Event) {
	if run.State == StateEnded && (e == EventScheduled || e == EventRestarted) {
		e = EventRequeued
	}
	if next, err := run.State.Next(e); err == nil {
		run.State = next
	}
}

// A person can stop and restart every run that waits or has ended.
func TestEveryPhaseLeadsToAnother(t *testing.T) {
	t.Parallel()
	for _, p := range allPhases {
		if phases[p][EventStopAsked] == "" {
			t.Errorf("%s cannot be stopped", p)
		}
		reached := map[Phase]bool{p: true}
		for range allPhases {
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

// The phase is derived from marks, which are stored under their original names.
func TestPhasesAreStoredAsMarks(t *testing.T) {
	t.Parallel()
	text, err := json.Marshal(QueueState{StopAsked: true, GivenUp: true, Paused: true, Fresh: true, Scheduled: true})
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
