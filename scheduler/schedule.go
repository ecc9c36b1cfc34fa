package scheduler

import (
	"fmt"
	"strings"
	"time"

	"github.com/netresearch/go-cron"

	"clove.run/clove/agent"
)

// timetable says when a schedule's times are.
type timetable interface {
	// Next is the first time after t, or zero when there is none.
	Next(t time.Time) time.Time
}

// crontab reads what crontab(5) has: five fields, where a day of the month and
// a day of the week that are both named mean either, and words such as @hourly.
var crontab = cron.MustNewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.Descriptor | cron.DowOrDom)

// scheduleHint is what to do about a text that is not a schedule.
const scheduleHint = `write "MINUTE HOUR DAY MONTH WEEKDAY", as in crontab(5), or @hourly, @daily, @weekly, @monthly, @yearly; CRON_TZ=Europe/Paris before it names a time zone`

// CheckSchedule refuses a text that is not a schedule, or that has no time to
// come. Without CRON_TZ its times are those of this process's own zone.
func CheckSchedule(text string, now time.Time) error {
	refused := func(format string, values ...any) error {
		return &agent.Error{Kind: agent.KindInvalid, Hint: scheduleHint, Message: fmt.Sprintf("%q is not a schedule: %s", text, fmt.Sprintf(format, values...))}
	}
	if strings.Contains(text, "@every") {
		// It would count from cloved's own start, which may be any time.
		return refused("@every is not supported; write times of day")
	}
	times, err := crontab.Parse(text)
	if err != nil {
		return refused("%v", err)
	}
	if times.Next(now).IsZero() {
		return refused("its time never comes")
	}
	return nil
}

// clockEvent is what the clock means for a scheduled run.
type clockEvent struct {
	what    agent.RunEventKind // empty: nothing has happened
	detail  string
	settled time.Time // then up to here
	due     bool      // its time has come: it joins the queue
	wake    time.Time // when to ask again; zero: never
}

// clockTolerance is how far the clock may go back without being set.
const clockTolerance = time.Minute

// maxSkipped bounds the counting: the clock may be set forward by years, and a schedule may
// have a time each minute.
const maxSkipped = 1000

// clockEventOf compares a scheduled run with the clock.
//
// Queue.Settled is the line between the times that are dealt with and those that
// are not. A run that waits for its schedule is due at the first time behind it,
// once, however many have passed: while cloved was dead, or the clock was set
// forward. While a run is busy, times that come are skipped.
func clockEventOf(run *agent.Run, times timetable, now time.Time) clockEvent {
	settled := run.Queue.Settled
	if settled.After(now.Add(clockTolerance)) {
		return clockEvent{what: agent.RunUpdated, detail: setBack, settled: now, wake: now}
	}
	next := nextTime(run, times)
	if next.IsZero() {
		return clockEvent{}
	}
	if run.Phase() == agent.PhaseScheduled {
		if next.After(now) {
			return clockEvent{wake: next}
		}
		return clockEvent{what: agent.RunDue, detail: "for " + next.Format(time.RFC3339), settled: now, due: true}
	}
	until := now
	if run.State == agent.StateEnded {
		until = run.Record.Ended // at later times it was not busy: cloved was away
	}
	return skipped(times, next, until)
}

// skipped counts the times up to one that passed while a run was busy.
func skipped(times timetable, first, until time.Time) clockEvent {
	next, n := first, 0
	for ; !next.IsZero() && !next.After(until) && n < maxSkipped; n++ {
		next = times.Next(next)
	}
	if n == 0 {
		return clockEvent{wake: next}
	}
	detail := first.Format(time.RFC3339) + ": the previous start has not ended"
	if n > 1 {
		detail = fmt.Sprintf("%s and %d more: the previous start had not ended", first.Format(time.RFC3339), n-1)
	}
	return clockEvent{what: agent.RunSkipped, detail: detail, settled: until}
}

// nextTime is the first time that is not dealt with. A delay that was asked for
// comes before the first of them.
func nextTime(run *agent.Run, times timetable) time.Time {
	from := run.Queue.Settled
	if run.Phase() == agent.PhaseScheduled && run.Queue.NotBefore.After(from) {
		from = run.Queue.NotBefore
	}
	// In this host's zone, unless the schedule names one. Stored times are UTC.
	next := times.Next(from.Local())
	if next.IsZero() {
		return next
	}
	return next.UTC()
}

// waitsForTime says when a schedule starts a run. That its time has come was
// stored before the queue is decided upon (Settle).
func waitsForTime(run *agent.Run) (reason string, next time.Time) {
	times, err := crontab.Parse(run.Spec.Schedule)
	if err != nil {
		return "its schedule cannot be read: " + err.Error(), next
	}
	if next = nextTime(run, times); next.IsZero() {
		return "its schedule has no further start time", next
	}
	return "its schedule starts it at " + next.Format(time.RFC3339), next
}

// Scheduled reports whether a schedule may start the run: it has one, and was
// not stopped.
func Scheduled(run *agent.Run) bool {
	return run.Spec.Schedule != "" && run.Phase() != agent.PhaseStopped
}

// WithNext fills in when the run's schedule starts it next.
func WithNext(run agent.Run) agent.Run {
	if Scheduled(&run) {
		if times, err := crontab.Parse(run.Spec.Schedule); err == nil {
			run.Queue.Next = nextTime(&run, times)
		}
	}
	return run
}
