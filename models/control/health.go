package control

import (
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

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
func retryName(k *call) string {
	return k.target.Provider.Name + " " + strconv.FormatUint(uint64(k.served.run.Owner.UID), 10)
}

// callerOf is whose call it is: a run's failures keep no others from a target.
func callerOf(k *call) route.Caller {
	return route.Caller{Owner: k.served.run.Owner.UID, Run: string(k.served.run.Spec.ID)}
}

func routesOf(targets []config.Target) []route.Target {
	var all []route.Target
	for _, t := range targets {
		all = append(all, route.Target{Name: routeName(t), Weight: t.Weight, Fallback: t.Fallback})
	}
	return all
}

// choose returns the index of the target that serves a call.
func (h *health) choose(k *call, targets []config.Target) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.routes.Choose(routesOf(targets), callerOf(k), rand.Float64(), time.Now())
}

// next returns the index of the target that serves a call which k.target has failed; -1: none may.
func (h *health) next(k *call, targets []config.Target) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(targets) == 0 || !h.retries.Take(retryName(k), time.Now()) {
		return -1
	}
	return h.routes.Next(routesOf(targets), callerOf(k), rand.Float64(), time.Now())
}

// report notes what became of a call. One whose client has gone says nothing.
func (h *health) report(k *call, d link.Done, cancelled bool) {
	o := outcome(d)
	if cancelled && o != route.Succeeded {
		o = route.Unknown
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.retries.Called(retryName(k), time.Now())
	h.routes.Report(routeName(k.target), callerOf(k), o, time.Now())
}

const (
	statusTooMany = 429
	statusFailed  = 500 // and above
)

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
