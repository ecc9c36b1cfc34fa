package scheduler

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"clove.run/clove/agent"
)

// on returns a run with a schedule that is settled up to noon.
func on(schedule string, change func(*agent.Run)) agent.Run {
	run := queuedRun("a", 0, func(r *agent.Run) {
		r.Spec.Schedule, r.Queue.Scheduled, r.Queue.Settled = schedule, true, noon
	})
	if change != nil {
		change(&run)
	}
	return run
}

// endedAt returns a scheduled run that ended so many minutes after noon.
func endedAt(minutes int) func(*agent.Run) {
	return func(r *agent.Run) {
		r.State, r.Queue.Scheduled = agent.StateEnded, false
		r.Record = &agent.Record{Ended: noon.Add(time.Duration(minutes) * time.Minute)}
	}
}

func busy(r *agent.Run) { r.State, r.Queue.Scheduled = agent.StateRunning, false }

func TestClockEvents(t *testing.T) {
	t.Parallel()
	at := func(minutes int) time.Time { return noon.Add(time.Duration(minutes) * time.Minute) }
	const everyTen = "CRON_TZ=UTC */10 * * * *"
	for _, c := range []struct {
		what string
		run  agent.Run
		now  time.Time
		want clockEvent // detail: a part of it
	}{
		{"not yet", on(everyTen, nil), at(9), clockEvent{wake: at(10)}},
		{"its time has come", on(everyTen, nil), at(10), clockEvent{what: agent.RunDue, detail: "12:10", settled: at(10), due: true}},
		{"missed: once, however often", on(everyTen, nil), at(95), clockEvent{what: agent.RunDue, detail: "12:10", settled: at(95), due: true}},
		{"first the delay", on(everyTen, func(r *agent.Run) { r.Queue.NotBefore = at(35) }), at(36), clockEvent{wake: at(40)}},
		{"behind the delay", on(everyTen, func(r *agent.Run) { r.Queue.NotBefore = at(35) }), at(40), clockEvent{what: agent.RunDue, detail: "12:40", settled: at(40), due: true}},
		{"it runs", on(everyTen, busy), at(9), clockEvent{wake: at(10)}},
		{"it still runs", on(everyTen, busy), at(10), clockEvent{what: agent.RunSkipped, detail: "12:10:00Z: the previous start", settled: at(10)}},
		{"it runs for long, and cloved did not run", on(everyTen, busy), at(31), clockEvent{what: agent.RunSkipped, detail: "12:10:00Z and 2 more", settled: at(31)}},
		{"it waits for its restart", on(everyTen, func(r *agent.Run) { r.Queue.Scheduled = false }), at(10), clockEvent{what: agent.RunSkipped, detail: "12:10", settled: at(10)}},
		{"it ended in time", on(everyTen, endedAt(5)), at(25), clockEvent{wake: at(10)}},
		{"it ended late while cloved was dead", on(everyTen, endedAt(15)), at(25), clockEvent{what: agent.RunSkipped, detail: "12:10", settled: at(15)}},
		{"a clock that is a little slow", on(everyTen, nil), noon.Add(-time.Second), clockEvent{wake: at(10)}},
		{"set back a year, waiting", on(everyTen, nil), noon.AddDate(-1, 0, 0), clockEvent{what: agent.RunUpdated, detail: "set back", settled: noon.AddDate(-1, 0, 0), wake: noon.AddDate(-1, 0, 0)}},
		{"set back a year, running", on(everyTen, busy), noon.AddDate(-1, 0, 0), clockEvent{what: agent.RunUpdated, detail: "set back", settled: noon.AddDate(-1, 0, 0), wake: noon.AddDate(-1, 0, 0)}},
		{"set forward a year, waiting", on(everyTen, nil), noon.AddDate(1, 0, 0), clockEvent{what: agent.RunDue, detail: "12:10", settled: noon.AddDate(1, 0, 0), due: true}},
		{"set forward a year, running", on("CRON_TZ=UTC * * * * *", busy), noon.AddDate(1, 0, 0), clockEvent{what: agent.RunSkipped, detail: "and 999 more", settled: noon.AddDate(1, 0, 0)}},
	} {
		times, err := crontab.Parse(c.run.Spec.Schedule)
		must(t, err)
		got := clockEventOf(&c.run, times, c.now)
		if !strings.Contains(got.detail, c.want.detail) || (c.want.detail == "") != (got.detail == "") {
			t.Errorf("%s: says %q, want %q", c.what, got.detail, c.want.detail)
		}
		if got.detail = c.want.detail; got != c.want {
			t.Errorf("%s: %+v, want %+v", c.what, got, c.want)
		}
	}
}

// At the changes of daylight saving time, a time that does not exist comes an hour later by
// local time, and a time that exists twice comes twice.
func TestSchedulesInSummerAndWinter(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ schedule, from, want string }{
		{"30 2 * * *", "2030-03-30T12:00:00Z", "2030-03-31T01:30:00Z"}, // there is no 02:30: 03:30 summer time
		{"30 3 * * *", "2030-03-30T12:00:00Z", "2030-03-31T01:30:00Z"},
		{"30 2 * * *", "2030-10-26T12:00:00Z", "2030-10-27T00:30:00Z"}, // the first of the two
		{"30 2 * * *", "2030-10-27T00:30:00Z", "2030-10-27T01:30:00Z"}, // and the second
		{"30 3 * * *", "2030-10-26T12:00:00Z", "2030-10-27T02:30:00Z"},
		{"0 0 1 * 1", "2030-01-02T12:00:00Z", "2030-01-06T23:00:00Z"}, // the first of the month, or a Monday
		{"@daily", "2030-01-02T12:00:00Z", "2030-01-02T23:00:00Z"},
	} {
		text := "CRON_TZ=Europe/Paris " + c.schedule
		must(t, CheckSchedule(text, noon))
		times, err := crontab.Parse(text)
		must(t, err)
		from, err := time.Parse(time.RFC3339, c.from)
		must(t, err)
		if got := times.Next(from).UTC().Format(time.RFC3339); got != c.want {
			t.Errorf("%s after %s: %s, want %s", c.schedule, c.from, got, c.want)
		}
	}
}

func TestWhatIsNoSchedule(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "x", "* * * *", "* * * * * *", "60 * * * *", "* 24 * * *", "0 0 30 2 *", "@reboot", "@every 1h",
		"CRON_TZ=Nowhere/Land 0 0 * * *", "CRON_TZ=UTC", "TZ=../../etc/passwd 0 0 * * *", "5-1/0 * * * *", strings.Repeat("1,", 5000) + "1 * * * *"} {
		err := CheckSchedule(text, noon)
		if err == nil {
			t.Errorf("%.40q is taken", text)
			continue
		}
		if hint := agent.FailureOf(err).Hint; agent.KindOf(err) != agent.KindInvalid || hint == "" || strings.Contains(err.Error(), "\n") {
			t.Errorf("%.40q: %v (%s)", text, err, hint)
		}
	}
}

// Whatever the clock does, a waiting run is started at most once for each look and never
// before its time, and a second look at the same time changes nothing: so a crash between two
// looks changes nothing.
func TestClockEventsSettle(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		times, err := crontab.Parse("CRON_TZ=UTC " + rapid.SampledFrom([]string{"* * * * *", "*/7 3-5 * * *", "@hourly", "0 0 1 * *"}).Draw(t, "schedule"))
		if err != nil {
			t.Fatal(err)
		}
		run := on("x", rapid.SampledFrom([]func(*agent.Run){nil, busy}).Draw(t, "state"))
		now := noon
		for range rapid.IntRange(1, 20).Draw(t, "looks") {
			now = now.Add(time.Duration(rapid.Int64Range(-int64(400*24*time.Hour), int64(400*24*time.Hour)).Draw(t, "moved")))
			for again := 0; ; again++ {
				o := clockEventOf(&run, times, now)
				if o.what == "" {
					if next := nextTime(&run, times); !o.wake.Equal(next) || !next.After(now) {
						t.Fatalf("at %v it wakes at %v, and its next time is %v", now, o.wake, next)
					}
					break
				}
				if again == 2 {
					t.Fatalf("a third change at %v: %+v", now, o)
				}
				if o.due && (run.Phase() != agent.PhaseScheduled || nextTime(&run, times).After(now)) {
					t.Fatalf("started at %v before its time %v", now, nextTime(&run, times))
				}
				if o.settled.After(now) {
					t.Fatalf("settles the future: %v at %v", o.settled, now)
				}
				if run.Queue.Settled = o.settled; o.due {
					busy(&run)
				}
			}
			if rapid.Bool().Draw(t, "ends") {
				run.State, run.Queue.Scheduled = agent.StateQueued, true
			}
		}
	})
}
