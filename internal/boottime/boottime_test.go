package boottime

import (
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
	"time"
)

// patience bounds events that come at once.
const patience = 30 * time.Second

func newTestAlarm(t *testing.T) *Alarm {
	t.Helper()
	a, err := New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close() })
	return a
}

func expectFired(t *testing.T, a *Alarm) {
	t.Helper()
	select {
	case <-a.Fired:
	case <-time.After(patience):
		t.Error("it did not fire")
	}
}

func expectSilent(t *testing.T, a *Alarm) {
	t.Helper()
	select {
	case <-a.Fired:
		t.Error("it fired early")
	default:
	}
}

func TestTheAlarmFires(t *testing.T) {
	now := NowNS()
	for name, at := range map[string]int64{"soon": now + int64(10*time.Millisecond), "now": now, "passed": 1, "before the boot": -1, "zero": 0} {
		a := newTestAlarm(t)
		a.Set(at)
		t.Run(name, func(t *testing.T) { expectFired(t, a) })
	}
	// An alarm that is far away stays set when all others have fired, and can be moved.
	a := newTestAlarm(t)
	a.Set(now + int64(time.Hour))
	expectSilent(t, a)
	a.Set(now)
	expectFired(t, a)
}

func TestTheAlarmFiresAfter(t *testing.T) {
	a := newTestAlarm(t)
	before := NowNS()
	a.SetAfter(math.MaxInt64)
	expectSilent(t, a)
	a.SetAfter(time.Hour)
	if left := a.Left(); left > time.Hour || left < time.Hour-time.Minute {
		t.Errorf("%v left", left)
	}
	a.SetAfter(20 * time.Millisecond) // replaces the alarm in an hour
	expectFired(t, a)
	if passed := time.Duration(NowNS() - before); passed < 20*time.Millisecond {
		t.Errorf("fired after %v", passed)
	}
	a.SetAfter(-time.Second) // a time in the past
	expectFired(t, a)
}

// TestTheAlarmsClockIsTheBoots: no process can set that clock.
func TestTheAlarmsClockIsTheBoots(t *testing.T) {
	a := newTestAlarm(t)
	a.Set(1 << 60)
	text, err := os.ReadFile(fmt.Sprintf("/proc/self/fdinfo/%d", a.file.Fd()))
	const clockBootTime = "clockid: 7\n"
	if err != nil || !strings.Contains(string(text), clockBootTime) || !strings.Contains(string(text), "settime flags: 01\n") {
		t.Errorf("%v:\n%s", err, text)
	}
}
