package control

import (
	"math/rand/v2"
	"sync"
	"time"

	"clove.run/clove/models/config"
	"clove.run/clove/models/link"
	"clove.run/clove/models/route"
)

// health is what became of the calls of each target.
type health struct {
	mu     sync.Mutex // guards routes
	routes route.Health
}

// routeName is the same for all models that a target serves.
func routeName(t config.Target) string { return t.Provider.Name + " " + t.Model }

// choose returns the target that serves the next call.
func (h *health) choose(targets []config.Target) config.Target {
	var all []route.Target
	for _, t := range targets {
		all = append(all, route.Target{Name: routeName(t), Weight: t.Weight, Fallback: t.Fallback})
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return targets[h.routes.Choose(all, rand.Float64(), time.Now())]
}

// report notes what became of a call. One whose client has gone says nothing.
func (h *health) report(t config.Target, d link.Done, cancelled bool) {
	o := outcome(d)
	if cancelled && o == route.Failed {
		o = route.Unknown
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.routes.Report(routeName(t), o, time.Now())
}

const (
	statusTooMany = 429
	statusFailed  = 500 // and above
)

// outcome is what a call says of its target. An error that the request may be the reason of
// says nothing: an agent could keep others from a provider.
func outcome(d link.Done) route.Outcome {
	switch {
	case d.Status == statusOK && (d.First > 0 || d.Complete):
		return route.Succeeded
	case d.Error != "" && d.Status <= statusOK, d.Status == statusTooMany, d.Status >= statusFailed:
		return route.Failed
	}
	return route.Unknown
}
