package control

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"clove.run/clove/internal/confine/keep"
	"clove.run/clove/kernel/budget"
	"clove.run/clove/models"
	"clove.run/clove/models/link"
)

// What is reported of a call has its figures, and its names by the configuration.
func TestACallIsReportedOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	run, front := r.started()
	b := ask(1, run, "tiny")
	b.Stream, b.Trace = true, "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	front.begin(b)
	up := within(t, r.upstreams)
	number := within(t, up.up).Call.Number
	if l := r.Loads(); l["p"] != (Load{Flying: 1}) || l["narrow"] != (Load{}) || len(l) != 6 {
		t.Errorf("%+v", l)
	}
	done := link.Done{Number: number, Status: 200, Sent: true, Complete: true, Model: strings.Repeat("m", 127) + "ä", Usage: models.Usage{In: 10, Cached: 5, Out: 20}, First: time.Second, Total: 2 * time.Second}
	up.send(link.FromUpstream{Done: &done})
	up.send(link.FromUpstream{Done: &done})
	c := within(t, r.called)
	if c.Began.IsZero() || c.Wait < 0 || c.ID == "" {
		t.Errorf("%+v", c)
	}
	c.Began, c.Wait, c.ID = time.Time{}, 0, ""
	want := models.Call{Model: "small", Provider: "p", Target: "theirs", Answered: strings.Repeat("m", 127), Format: models.OpenAIChat, Stream: true, Outcome: models.OutcomeOK, Status: 200, Trace: b.Trace,
		Usage: done.Usage, Cost: 10 + 5 + 20*10, First: time.Second, Total: 2 * time.Second}
	if c != want {
		t.Errorf("%+v, want %+v", c, want)
	}
	front.begin(ask(2, run, "none")) // behind what was sent twice
	if c := within(t, r.called); c.Outcome != models.OutcomeRefused || c.Reason != string(link.ReasonUnknown) || c.Model != "" {
		t.Errorf("%+v", c)
	}
	if l := r.Loads(); l["p"] != (Load{}) {
		t.Errorf("%+v", l)
	}
}

// Each way in which a call ends has a word, and one that is refused a reason.
func TestWhatBecomesOfACall(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		done      link.Done
		cancelled bool
		outcome   models.Outcome
	}{
		{link.Done{Status: 200, Complete: true}, false, models.OutcomeOK},
		{link.Done{Status: 200, Complete: true}, true, models.OutcomeOK}, // the client went with the whole answer
		{link.Done{Status: 200, Error: "the client is gone"}, true, models.OutcomeCancelled},
		{link.Done{Status: 200, Error: "the answer broke off"}, false, models.OutcomeBroken},
		{link.Done{Status: http.StatusTooManyRequests}, false, models.OutcomeOverloaded},
		{link.Done{Status: 529}, false, models.OutcomeOverloaded},
		{link.Done{Status: http.StatusServiceUnavailable}, false, models.OutcomeOverloaded},
		{link.Done{Status: http.StatusBadRequest}, false, models.OutcomeRejected},
		{link.Done{Status: http.StatusInternalServerError}, false, models.OutcomeFailed},
		{link.Done{Status: http.StatusFound}, false, models.OutcomeFailed},
		{link.Done{Error: "the provider cannot be reached"}, false, models.OutcomeFailed},
	} {
		if got := outcomeOf(row.done, row.cancelled); got != row.outcome {
			t.Errorf("%+v: %s", row, got)
		}
	}
}

// A call that waits is counted, and one whose client goes meanwhile is cancelled. What a
// clove-upstream that ends had begun is lost.
func TestCallsThatWaitAreCounted(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	run, front := r.started()
	if m := front.begin(ask(1, run, "queued")); m.Go == nil {
		t.Fatalf("%+v", m)
	}
	up := within(t, r.upstreams)
	second := ask(2, run, "queued")
	front.send(link.FromFront{Begin: &second})
	r.until(func() bool { return r.Loads()["narrow"] == Load{Waiting: 1, Flying: 1} })
	front.send(link.FromFront{Cancel: 2})
	if c := within(t, r.called); c.Outcome != models.OutcomeCancelled || c.Model != "queued" || c.Wait <= 0 || c.Total != 0 {
		t.Errorf("%+v", c)
	}
	up.conn.Close()
	if c := within(t, r.called); c.Outcome != models.OutcomeLost || fmt.Sprint(c.Usage) != fmt.Sprint(models.Usage{In: 100, Out: 100}) || c.Total <= 0 {
		t.Errorf("%+v", c)
	}
	r.until(func() bool { return r.Loads()["narrow"] == Load{} })
}

// until waits for a state that nothing reports.
func (r *rig) until(holds func() bool) {
	r.t.Helper()
	for deadline := time.Now().Add(soon); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			r.t.Fatalf("%+v", r.Loads())
		}
	}
}

// A call for which no clove-upstream can be started is settled and refused, and reported once.
func TestACallThatCannotBeginIsReportedOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	var full atomic.Bool
	start := r.launcher.Spawn
	r.launcher.Spawn = func(executable string, id uint32, journal *os.File, files ...*os.File) (keep.Child, error) {
		if full.Load() {
			return nil, errors.New("no room")
		}
		return start(executable, id, journal, files...)
	}
	run, front := r.started()
	full.Store(true)
	if m := front.begin(ask(1, run, "small")); m.Refuse == nil {
		t.Fatalf("%+v", m)
	}
	front.begin(ask(2, run, "none"))
	if c := within(t, r.called); c.Outcome != models.OutcomeFailed || c.Model != "small" || c.Total != 0 {
		t.Errorf("%+v", c)
	}
	if c := within(t, r.called); c.Reason != string(link.ReasonUnknown) {
		t.Errorf("%+v", c)
	}
}

// A call of several tries is reported once: the last target that was tried, and what all used.
func TestACallOfSeveralTriesIsReportedOnce(t *testing.T) {
	t.Parallel()
	s := newSeveral(t, twoTargets)
	want := func(outcome models.Outcome, status int, provider string, in, cost int64) {
		t.Helper()
		c := within(t, s.called)
		if c.Outcome != outcome || c.Status != status || c.Provider != provider || c.Usage.In != in || c.Cost != cost {
			t.Errorf("%+v, want %s, %d, %s, %d, %d", c, outcome, status, provider, in, cost)
		}
	}
	s.begin()
	s.fails(tooSlow)
	s.ends(answered)
	want(models.OutcomeOK, 200, "q", 200, 320)
	s.begin()
	s.ledger.mu.Lock()
	s.ledger.limits[budget.CostMicros] = 320 + 399 // the second may cost 400
	s.ledger.mu.Unlock()
	s.ends(overloaded)
	s.stands()
	want(models.OutcomeOverloaded, 529, "p", 0, 0)
	s.ledger.mu.Lock()
	delete(s.ledger.limits, budget.CostMicros)
	s.ledger.mu.Unlock()
	s.begin()
	s.fails(tooSlow)
	s.up.conn.Close()
	want(models.OutcomeLost, 0, "q", 200, 500)
	if len(s.called) != 0 {
		t.Errorf("%+v", <-s.called)
	}
}
