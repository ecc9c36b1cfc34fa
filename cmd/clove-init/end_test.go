package main

import (
	"testing"
	"time"

	"clove.run/clove/internal/boottime"
	"clove.run/clove/internal/initproto"
)

// TestAnEndAfterTheDeadlineIsTheDeadlines: whichever of the two PID 1 notices first.
func TestAnEndAfterTheDeadlineIsTheDeadlines(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		wallClock time.Duration
		endNS     int64
		want      initproto.Cause
	}{
		"before":           {time.Second, 99, initproto.CauseSelf},
		"at the deadline":  {time.Second, 100, initproto.CauseDeadline},
		"after it":         {time.Second, 101, initproto.CauseDeadline},
		"the clock is off": {0, 101, initproto.CauseSelf},
	} {
		s := &sandbox{wallClock: c.wallClock, deadline: &boottime.Alarm{DueNS: 100}}
		s.onEnd(ending{bootTimeNS: c.endNS})
		if s.cause != c.want || s.end.bootTimeNS != c.endNS {
			t.Errorf("%s: cause %q, end %d", name, s.cause, s.end.bootTimeNS)
		}
	}
	s := &sandbox{wallClock: time.Second, deadline: &boottime.Alarm{}, cause: initproto.CauseStop}
	if s.onEnd(ending{bootTimeNS: 101}); s.cause != initproto.CauseStop {
		t.Errorf("an agent that never started: %q", s.cause)
	}
}
