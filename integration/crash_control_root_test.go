//go:build root

package integration

import (
	"testing"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
)

// TestModelSeesLosses is the control of TestCycles: each row changes a cloved's answer as if
// something had been lost, and the model must notice it.
func TestModelSeesLosses(t *testing.T) {
	id := agent.ID("00000000000000aa")
	sound := func() (*model, agent.Run) {
		m := newModel()
		m.runs[id] = &promise{id: id, names: []string{"a"}, wall: []time.Duration{time.Hour}, exists: []bool{true}, ends: -1, live: true, pid: 7}
		return m, agent.Run{Spec: agent.Spec{ID: id, Name: "a", Limits: agent.Limits{WallClock: time.Hour}}, State: agent.StateRunning, PID: 7}
	}
	ended := func(run *agent.Run, status agent.Status, code int) {
		run.State, run.Record = agent.StateEnded, &agent.Record{Status: status, ExitCode: code}
	}
	for name, change := range map[string]struct {
		change func(*model, *agent.Run) // nil: nothing was lost, and the model must accept it
		faults bool
	}{
		"nothing":           {func(*model, *agent.Run) {}, false},
		"rename is lost":    {func(_ *model, run *agent.Run) { run.Spec.Name = "b" }, true},
		"update is lost":    {func(_ *model, run *agent.Run) { run.Spec.Limits.WallClock = 0 }, true},
		"another process":   {func(_ *model, run *agent.Run) { run.PID = 8 }, true},
		"it is not running": {func(_ *model, run *agent.Run) { ended(run, agent.StatusKilled, 137) }, true},
		"removal is lost":   {func(m *model, _ *agent.Run) { m.runs[id].exists = []bool{false} }, true},
		"not requested":     {func(m *model, _ *agent.Run) { delete(m.runs, id) }, true},
		"a wrong exit": {func(m *model, run *agent.Run) {
			m.runs[id].live, m.runs[id].ends = false, 3
			ended(run, agent.StatusExited, 4)
		}, true},
		"a true exit": {func(m *model, run *agent.Run) {
			m.runs[id].live, m.runs[id].ends = false, 3
			ended(run, agent.StatusExited, 3)
		}, false},
	} {
		m, run := sound()
		change.change(m, &run)
		m.compare([]agent.Run{run})
		if (len(m.faults) > 0) != change.faults {
			t.Errorf("%s: %q", name, m.faults)
		}
	}
	m, _ := sound()
	if m.compare(nil); len(m.faults) == 0 {
		t.Error("a lost run is not missed")
	}
	for name, events := range map[string][]uint64{"gap": {1, 3}, "duplicate": {1, 1}} {
		m := newModel()
		for _, n := range events {
			_ = m.hear(api.EventNote{Event: &agent.RunEvent{Sequence: n}})
		}
		if len(m.faults) == 0 {
			t.Errorf("a %s of events is not seen", name)
		}
	}
	m.told[happening{id, agent.RunRenamed}] = 1
	before := len(m.faults)
	if m.everyEvent(); len(m.faults) == before {
		t.Error("a missing event is not seen")
	}
}
