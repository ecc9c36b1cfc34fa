package control

import (
	"math"
	"sync"

	"clove.run/clove/models/config"
	"clove.run/clove/models/link"
)

// learned is what the settled calls of a run teach about the estimate of the input of its next
// calls, for each target. It only raises estimates. The zero value is ready.
type learned struct {
	mu  sync.Mutex       // guards all
	all map[string]input // by routeName
}

// input is the most by which providers' counts have exceeded estimates.
type input struct {
	ratio   float64
	surplus int64 // tokens
}

// learn takes an estimate and what a provider has reported, cached tokens included.
func (l *learned) learn(t config.Target, estimate int64, d link.Done) {
	counted := d.Usage.Input()
	if !d.Reported || d.Estimated || counted <= estimate || estimate <= 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.all == nil {
		l.all = map[string]input{}
	}
	known := l.all[routeName(t)]
	l.all[routeName(t)] = input{max(known.ratio, float64(counted)/float64(estimate)), max(known.surplus, counted-estimate)}
}

// raised is an estimate with what was learned: with the same ratio, but no more tokens above it
// than were seen. So a short request with a long fixed part does not multiply a long one.
func (l *learned) raised(t config.Target, estimate int64) int64 {
	if l == nil {
		return estimate
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	known := l.all[routeName(t)]
	return max(estimate, min(int64(math.Ceil(float64(estimate)*known.ratio)), estimate+known.surplus))
}
