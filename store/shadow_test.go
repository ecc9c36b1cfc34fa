package store

import (
	"testing"

	"clove.run/clove/agent"
)

// The refusals of a shadow are an event before the end. The control is an end without a
// shadow.
func TestAShadowIsAnEvent(t *testing.T) {
	t.Parallel()
	for _, shadow := range []*agent.ShadowUse{nil, {Policy: agent.Policy{Name: "strict"}}} {
		s := openNew(t)
		run, err := s.Begin(newRun("solo"))
		must(t, err)
		record := recordOf(run.Spec)
		record.Shadow = shadow
		_, err = s.Finish(run.Spec.ID, agent.EventRecorded, record, nil)
		must(t, err)
		events, _, err := s.Events(0, 100)
		must(t, err)
		last := events[len(events)-2:]
		if seen := last[0].Kind == agent.RunShadowed && last[0].Detail == "policy strict would have refused nothing"; seen != (shadow != nil) || last[1].Kind != agent.RunEnded {
			t.Errorf("%+v", last)
		}
	}
}
