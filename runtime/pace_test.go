package runtime

import (
	"testing"
	"time"
)

// What is owed beyond the credit has to be waited for, at the share; time pays it off.
func TestPace(t *testing.T) {
	t.Parallel()
	p := newPace(0.1)
	now := p.at
	if wait := p.owe(paceCredit, now); wait > 0 {
		t.Errorf("the credit is not given: %s", wait)
	}
	if wait := p.owe(time.Millisecond, now); wait < 9*time.Millisecond || wait > 11*time.Millisecond {
		t.Errorf("a millisecond at a tenth is %s", wait)
	}
	if wait := p.owe(0, now.Add(time.Minute)); wait > 0 || p.owed != 0 {
		t.Errorf("after a minute: %s, %s owed", wait, p.owed)
	}
	p.owed = time.Hour
	began := time.Now()
	p.stop()
	p.stop()
	p.worked(time.Hour)
	if time.Since(began) > time.Minute {
		t.Error("a run's end waits for its agent's debt")
	}
}
