package store

import (
	"strings"
	"testing"
	"time"

	"clove.run/clove/agent"
)

// A panic is kept, refuses each start with its reason, and is over when it is cleared.
func TestNothingBeginsWhileAPanicStands(t *testing.T) {
	t.Parallel()
	path := tempFile(t)
	s := open(t, path)
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	must(t, s.SetPanic(&Panic{Reason: "a leak", Time: at}))
	must(t, s.Close())
	s = open(t, path)
	p, err := s.Panic()
	must(t, err)
	if p == nil || p.Reason != "a leak" || !p.Time.Equal(at) {
		t.Errorf("%+v", p)
	}
	_, err = s.Begin(newRun("refused"))
	if agent.KindOf(err) != agent.KindConflict || !strings.Contains(err.Error(), "a leak") || agent.FailureOf(err).Hint == "" {
		t.Errorf("it begins: %v", err)
	}
	must(t, s.SetPanic(nil))
	if p, err = s.Panic(); p != nil || err != nil {
		t.Errorf("it is not cleared: %+v, %v", p, err)
	}
	if _, err = s.Begin(newRun("refused")); err != nil { // the control
		t.Error(err)
	}
	must(t, s.Close())
	checkClean(t, path)
}
