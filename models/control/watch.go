package control

import (
	"strings"
	"sync"
	"time"

	"clove.run/clove/models"
	"clove.run/clove/models/link"
)

// watched is what is noted of a call for those who observe.
type watched struct {
	began     time.Time
	wait      time.Duration // of all tries
	sent      time.Time     // to clove-upstream
	done      *link.Done    // nil: clove-upstream has reported nothing
	cancelled bool          // its client was gone when it ended
	once      sync.Once     // a call whose launch fails is settled, and refused
}

// reportPaid reports a call that was settled: how its last try ended, and what all have used.
func (k *call) reportPaid() {
	r := models.Call{Outcome: models.OutcomeLost, Usage: k.spent.usage, Cost: k.spent.cost}
	if !k.watched.sent.IsZero() {
		r.Total = time.Since(k.watched.sent)
	}
	if d := k.watched.done; d != nil {
		r.Outcome, r.Status, r.Answered, r.First, r.Total = outcomeOf(*d, k.watched.cancelled), d.Status, d.Model, d.First, d.Total
	}
	k.report(r)
}

// reportRefused reports a call that was not made.
func (k *call) reportRefused(why *link.Refuse) {
	r := models.Call{Outcome: models.OutcomeRefused, Reason: string(why.Reason)}
	if k.ctx.Err() != nil {
		r = models.Call{Outcome: models.OutcomeCancelled}
	}
	k.report(r)
}

// report fills in what is known of each call. That of a run which this clove-models does not
// serve is no one's.
func (k *call) report(r models.Call) {
	called := k.front.control.options.Called
	if called == nil || k.served == nil {
		return
	}
	k.watched.once.Do(func() {
		r.ID, r.Model, r.Target, r.Format, r.Stream = k.reservation, k.target.Name, k.target.Model, k.begin.Format, k.begin.Stream
		if k.target.Provider != nil {
			r.Provider = k.target.Provider.Name
		}
		r.Began, r.Wait, r.Trace = k.watched.began, k.watched.wait, k.begin.Trace
		r.Answered = strings.ToValidUTF8(r.Answered[:min(len(r.Answered), maxAnswered)], "")
		called(k.served.run, r)
	})
}

// maxAnswered bounds the name that a provider gives its model, in bytes.
const maxAnswered = 128

// outcomeOf is what became of a call that clove-upstream has made.
func outcomeOf(d link.Done, cancelled bool) models.Outcome {
	switch {
	case d.Status == statusOK && d.Complete:
		return models.OutcomeOK
	case cancelled:
		return models.OutcomeCancelled
	case d.Status == statusOK:
		return models.OutcomeBroken
	case d.Status == statusTooMany, d.Status == statusUnavailable, d.Status == statusOverloaded:
		return models.OutcomeOverloaded
	case d.Status >= 400 && d.Status < statusFailed:
		return models.OutcomeRejected
	}
	return models.OutcomeFailed
}

const (
	statusUnavailable = 503
	statusOverloaded  = 529 // Anthropic's
)

// Load is how many calls there are at a provider.
type Load struct{ Waiting, Flying int64 }

// loads are those of the providers, by name.
type loads struct {
	mu  sync.Mutex // guards all
	all map[string]Load
}

func (l *loads) add(provider string, waiting, flying int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.all == nil {
		l.all = map[string]Load{}
	}
	now := l.all[provider]
	l.all[provider] = Load{now.Waiting + waiting, now.Flying + flying}
}

// fly counts a call that is being made.
func (l *loads) fly(provider string, more int64) { l.add(provider, 0, more) }

// waits counts a call that waits for its turn, until the function that it returns is called.
func (c *Control) waits(k *call) (ends func()) {
	began, provider := time.Now(), k.target.Provider.Name
	k.served.wait(1)
	c.loads.add(provider, 1, 0)
	return func() {
		k.served.wait(-1)
		c.loads.add(provider, -1, 0)
		k.watched.wait += time.Since(began)
	}
}

// Loads returns how many calls wait and are being made now, by provider: of each in the
// configuration, and of others that still have calls.
func (c *Control) Loads() map[string]Load {
	all := map[string]Load{}
	for name := range c.options.Config().Providers {
		all[name] = Load{}
	}
	c.loads.mu.Lock()
	defer c.loads.mu.Unlock()
	for name, now := range c.loads.all {
		if now != (Load{}) {
			all[name] = now
		}
	}
	return all
}
