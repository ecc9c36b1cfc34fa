package control

import (
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/models/config"
	"clove.run/clove/models/link"
	"clove.run/clove/models/route"
)

// health is what became of the calls of each target.
type health struct {
	mu      sync.Mutex // guards the following
	routes  route.Health
	retries route.Retries
}

// routeName is the same for all models that a target serves.
func routeName(t config.Target) string { return t.Provider.Name + " " + t.Model }

// retryName is under what retries of calls are counted: no owner uses up those of another.
func retryName(t config.Target, by route.Caller) string {
	return t.Provider.Name + " " + strconv.FormatUint(uint64(by.Owner), 10)
}

func routesOf(targets []config.Target) []route.Target {
	var all []route.Target
	for _, t := range targets {
		all = append(all, route.Target{Name: routeName(t), Weight: t.Weight, Fallback: t.Fallback})
	}
	return all
}

// choose returns the index of the target that serves a call.
func (h *health) choose(by route.Caller, targets []config.Target) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.routes.Choose(routesOf(targets), by, rand.Float64(), time.Now())
}

// next returns the index of the target that serves a call which one has failed; -1: none may.
func (h *health) next(by route.Caller, failed config.Target, targets []config.Target) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(targets) == 0 || !h.retries.Take(retryName(failed, by), time.Now()) {
		return -1
	}
	return h.routes.Next(routesOf(targets), by, rand.Float64(), time.Now())
}

// report notes what became of a call. One whose client has gone says nothing.
func (h *health) report(by route.Caller, t config.Target, d link.Done, cancelled bool) {
	o := outcome(d)
	if cancelled && o != route.Succeeded {
		o = route.Unknown
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.retries.Called(retryName(t, by), time.Now())
	h.routes.Report(routeName(t), by, o, time.Now())
}

// outcome is what a call says of its target. An error that the request may be the reason of
// says nothing: an agent could keep others from a provider.
func outcome(d link.Done) route.Outcome {
	switch {
	case d.Unreached:
		return route.Unreached
	case d.Status == statusOK && (d.First > 0 || d.Complete):
		return route.Succeeded
	case d.Error != "" && d.Status <= statusOK, d.Status == statusTooMany, d.Status >= statusFailed:
		return route.Failed
	}
	return route.Unknown
}

// word is how a target does for a user's agents; for everybody's, if it is root who asks.
func (h *health) word(t config.Target, asks agent.Owner) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	sees := func(owner uint32) bool { return asks.UID == 0 || asks.UID == owner }
	switch failing, out := h.routes.State(routeName(t), sees, time.Now()); {
	case out:
		return api.HealthOut
	case failing:
		return api.HealthFailing
	}
	return api.HealthOK
}

// HTTP's statuses. Package net/http would make clove larger.
const (
	statusOK           = 200
	statusRedirect     = 300
	statusBad          = 400
	statusUnauthorized = 401
	statusForbidden    = 403
	statusNotFound     = 404
	statusTooMany      = 429
	statusFailed       = 500 // and above
	statusUnavailable  = 503
	statusOverloaded   = 529 // Anthropic's
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

// now returns those that have calls.
func (l *loads) now() map[string]Load {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := map[string]Load{}
	for name, now := range l.all {
		if now != (Load{}) {
			all[name] = now
		}
	}
	return all
}
