package scheduler

import (
	"testing"
	"time"

	"clove.run/clove/agent"
)

// A long wait that was requested is kept.
func TestMisdated(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		since, due time.Duration
		state      agent.State
		want       bool
	}{
		"a long delay":           {-time.Hour, 1000 * time.Hour, agent.StateQueued, false},
		"set back":               {1000 * time.Hour, 1001 * time.Hour, agent.StateQueued, true},
		"corrected":              {clockSlack, time.Hour, agent.StateQueued, false},
		"set back, nothing due":  {1000 * time.Hour, 0, agent.StateQueued, false},
		"set back while it runs": {1000 * time.Hour, 1001 * time.Hour, agent.StateRunning, false},
	} {
		run := agent.Run{State: c.state, Queue: agent.QueueState{Since: now.Add(c.since), NotBefore: now.Add(c.due)}}
		if misdated(&run, now) != c.want {
			t.Errorf("%s", name)
		}
	}
	if due := notLater(now.Add(time.Second), now); !due.Equal(now.Add(time.Second)) {
		t.Errorf("%s", due)
	}
	if due := notLater(now.Add(time.Hour), now); !due.Equal(now.Add(MaxBackoff)) {
		t.Errorf("%s", due)
	}
}
