package monitor

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

// patience is for what comes at once.
const patience = 30 * time.Second

func newTestAlarm(t *testing.T) *alarm {
	t.Helper()
	a, err := newAlarm()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.file.Close() })
	return a
}

func expectFired(t *testing.T, a *alarm) {
	t.Helper()
	select {
	case <-a.fired:
	case <-time.After(patience):
		t.Error("it did not fire")
	}
}

func TestTheAlarmFires(t *testing.T) {
	now, err := bootTime()
	if err != nil {
		t.Fatal(err)
	}
	for name, at := range map[string]time.Duration{"soon": now + 10*time.Millisecond, "now": now, "passed": 1, "before the boot": -1, "zero": 0} {
		a := newTestAlarm(t)
		if err := a.set(at); err != nil {
			t.Fatal(err)
		}
		t.Run(name, func(t *testing.T) { expectFired(t, a) })
	}
	// One that is far away is still set when all of those have fired, and may be moved.
	a := newTestAlarm(t)
	if err := a.set(now + time.Hour); err != nil {
		t.Fatal(err)
	}
	select {
	case <-a.fired:
		t.Error("it fired an hour early")
	default:
	}
	if err := a.set(now); err != nil {
		t.Fatal(err)
	}
	expectFired(t, a)
}

// TestTheAlarmsClockIsTheBoots: nobody sets that one.
func TestTheAlarmsClockIsTheBoots(t *testing.T) {
	a := newTestAlarm(t)
	if err := a.set(1 << 60); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(fmt.Sprintf("/proc/self/fdinfo/%d", a.file.Fd()))
	const clockBootTime = "clockid: 7\n"
	if err != nil || !strings.Contains(string(text), clockBootTime) || !strings.Contains(string(text), "settime flags: 01\n") {
		t.Errorf("%v:\n%s", err, text)
	}
}
