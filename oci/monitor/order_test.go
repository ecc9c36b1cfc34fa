package monitor

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"clove.run/clove/agent"
)

// TestTheDeadlineIsNoClocksThatAnybodySets: it does not depend on the wall clock.
func TestTheDeadlineIsNoClocksThatAnybodySets(t *testing.T) {
	const boot = 1000 * time.Second
	for name, wall := range map[string]time.Time{
		"now": time.Now(), "set back": time.Unix(0, 0), "set forward": time.Now().AddDate(100, 0, 0),
	} {
		o := order{Phase: phaseCreated, Limits: agent.Limits{WallClock: time.Minute}}
		if err := o.start(wall, boot); err != nil || o.Deadline != boot+time.Minute || o.StartedAt != boot || o.Phase != phaseStarted {
			t.Errorf("%s: %v, %+v", name, err, o)
		}
		first := o
		if err := o.start(wall.Add(time.Hour), 2*boot); err != nil || !reflect.DeepEqual(o, first) {
			t.Errorf("%s: a second start: %v, %+v became %+v", name, err, first, o)
		}
	}
	o := order{Phase: phaseCreated}
	if err := o.start(time.Now(), boot); err != nil || o.Deadline != 0 {
		t.Errorf("no deadline was asked for: %v, %+v", err, o)
	}
	for _, p := range []phase{phaseExpired, phaseEnded} {
		if err := (&order{Phase: p}).start(time.Now(), boot); err == nil {
			t.Errorf("a container that is %s starts", p)
		}
	}
}

func TestAnOrderOutlivesItsMonitor(t *testing.T) {
	directory := t.TempDir()
	if _, found, err := readOrder(directory); found || err != nil {
		t.Errorf("a container without rules: %t, %v", found, err)
	}
	want := order{Version: orderVersion, Phase: phaseStarted, ID: "one", Pid: 7, PidStart: 1 << 60, Cgroups: map[string]string{"": "/x"},
		Command: []string{"a", "b"}, Limits: agent.Limits{WallClock: time.Hour, Pids: 3}, Record: "/r.json",
		Started: time.Unix(5, 0).UTC(), StartedAt: 1, Deadline: 1<<62 + 1}
	for range 2 {
		if err := want.save(directory); err != nil {
			t.Fatal(err)
		}
	}
	got, found, err := readOrder(directory)
	if err != nil || !found || !reflect.DeepEqual(got, want) {
		t.Errorf("%v\n got %+v\nwant %+v", err, got, want)
	}
	if err := want.save(filepath.Join(directory, "none")); err == nil {
		t.Error("it was saved nowhere")
	}
}

func TestAnOrderOfNobodysIsRefused(t *testing.T) {
	for _, text := range []string{"", "{", "[]", "{}", `{"version":2}`, `{"version":"1"}`} {
		directory := t.TempDir()
		if err := os.WriteFile(filepath.Join(directory, orderName), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, found, err := readOrder(directory); err == nil || !found {
			t.Errorf("%q: %t, %v", text, found, err)
		}
	}
}

func TestTheLockIsOnesOnly(t *testing.T) {
	directory := t.TempDir()
	first, err := lock(directory)
	if err != nil || first == nil {
		t.Fatal(err)
	}
	if second, err := lock(directory); second != nil || err != nil {
		t.Errorf("two have it: %v", err)
	}
	first.Close()
	second, err := lock(directory)
	if err != nil || second == nil {
		t.Fatalf("no process holds the lock: %v", err)
	}
	if again, err := lockAgain(directory); again != nil || err != nil {
		t.Errorf("two have it: %v", err)
	}
	second.Close()
	again, err := lockAgain(directory)
	if err != nil || again == nil {
		t.Fatalf("no process holds the lock: %v", err)
	}
	again.Close()
	if _, err := lock(filepath.Join(directory, "none")); err == nil {
		t.Error("nothing was locked")
	}
}
