package daemon

import (
	"fmt"
	"strings"
	"time"

	"github.com/netresearch/go-cron"

	"clove.run/clove/agent"
	"clove.run/clove/api"
)

// timetable says when a schedule's times are.
type timetable interface {
	// Next is the first time after t, or zero when there is none.
	Next(t time.Time) time.Time
}

// crontab reads what crontab(5) has: five fields, where a day of the month and
// a day of the week that are both named mean either, and words such as @hourly.
var crontab = cron.MustNewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.Descriptor | cron.DowOrDom)

// scheduleHint is what to do about a schedule that is none.
const scheduleHint = `write "MINUTE HOUR DAY MONTH WEEKDAY", as in crontab(5), or @hourly, @daily, @weekly, @monthly, @yearly; CRON_TZ=Europe/Paris before it names a time zone`

// parseSchedule reads a schedule, which must have a time to come. Without
// CRON_TZ its times are those of cloved's own zone.
func parseSchedule(text string, now time.Time) (timetable, error) {
	refused := func(format string, values ...any) error {
		return api.Failure(api.CodeParams, scheduleHint, "%q is not a schedule: %s", text, fmt.Sprintf(format, values...))
	}
	if strings.Contains(text, "@every") {
		return nil, refused("an interval has no times of day")
	}
	parsed, err := crontab.Parse(text)
	if err != nil {
		return nil, refused("%v", err)
	}
	if parsed.Next(now).IsZero() {
		return nil, refused("its time never comes")
	}
	return parsed, nil
}

// occasion is what the clock means for a scheduled run.
type occasion struct {
	what    agent.RunEventKind // empty: nothing has happened
	detail  string
	settled time.Time // then up to here
	due     bool      // its time has come: it joins the queue
	wake    time.Time // when to ask again; zero: never
}

// clockTolerance is how far the clock may go back without being set.
const clockTolerance = time.Minute

// maxSkipped bounds the counting: the clock may be set forward by years.
const maxSkipped = 1000

// occasionOf compares a scheduled run with the clock. It is a pure function of
// what is stored: whoever asks after a crash gets the same answer.
//
// Turn.Settled is the line between the times that are dealt with and those that
// are not. A run that waits for its schedule is due at the first time behind it,
// once, however many have passed: while cloved was dead, or the clock was set
// forward. While a run is busy, times that come are skipped.
func occasionOf(run agent.Run, times timetable, now time.Time) occasion {
	settled := run.Turn.Settled
	if settled.After(now.Add(clockTolerance)) {
		return occasion{what: agent.RunUpdated, detail: "the clock was set back", settled: now, wake: now}
	}
	next := nextTime(run, times)
	if next.IsZero() {
		return occasion{}
	}
	if waitsForSchedule(run) {
		if next.After(now) {
			return occasion{wake: next}
		}
		return occasion{what: agent.RunDue, detail: "for " + next.Format(time.RFC3339), settled: now, due: true}
	}
	until := now
	if run.State == agent.StateEnded {
		until = run.Record.Ended // what came later was missed by nobody but cloved
	}
	first, n := next, 0
	for ; !next.IsZero() && !next.After(until) && n < maxSkipped; n++ {
		next = times.Next(next)
	}
	if n == 0 {
		return occasion{wake: next}
	}
	detail := first.Format(time.RFC3339) + ": the time before has not ended"
	if n > 1 {
		detail = fmt.Sprintf("%s and %d more: the time before had not ended", first.Format(time.RFC3339), n-1)
	}
	return occasion{what: agent.RunSkipped, detail: detail, settled: until}
}

// waitsForSchedule tells whether the run is started by its schedule next.
func waitsForSchedule(run agent.Run) bool {
	return run.State == agent.StateQueued && run.Turn.Scheduled
}

// nextTime is the first time that is not dealt with. A delay that was asked for
// comes before the first of them.
func nextTime(run agent.Run, times timetable) time.Time {
	from := run.Turn.Settled
	if waitsForSchedule(run) && run.Turn.NotBefore.After(from) {
		from = run.Turn.NotBefore
	}
	next := times.Next(from.Local())
	if next.IsZero() {
		return next
	}
	return next.UTC()
}

// scheduled tells whether a schedule has a say in a run: nobody has stopped it.
func scheduled(run *agent.Run) bool {
	return run.Spec.Schedule != "" && !(run.State == agent.StateEnded && run.Turn.StopAsked)
}

// withNext fills in when the run's schedule starts it next.
func withNext(run agent.Run) agent.Run {
	if scheduled(&run) {
		if times, err := crontab.Parse(run.Spec.Schedule); err == nil {
			run.Turn.Next = nextTime(run, times)
		}
	}
	return run
}

// keepTime lets the clock's word on each scheduled run be stored. It returns
// when to look again.
func (k *keeper) keepTime(now time.Time) (wake time.Time, err error) {
	for _, run := range k.mirror.all(scheduled) {
		times, err := crontab.Parse(run.Spec.Schedule)
		if err != nil {
			continue // its zone is gone from this host: its reason says so
		}
		o := occasionOf(run, times, now)
		wake = sooner(wake, o.wake)
		if o.what == "" {
			continue
		}
		_, err = k.records.amend(run.Spec.ID, o.what, o.detail, func(r *agent.Run) {
			r.Turn.Settled = o.settled
			if o.due {
				r.Turn.Scheduled, r.Turn.NotBefore, r.Turn.Since = false, time.Time{}, now.UTC()
			}
		})
		if err != nil && agent.KindOf(err) != agent.KindNotFound {
			return wake, err
		}
		wake = sooner(wake, now) // for what the change means
	}
	return wake, nil
}

// sooner is the earlier of two times, of which zero is none.
func sooner(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
