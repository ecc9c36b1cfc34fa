package tools

import (
	"context"
	"sync"

	"golang.org/x/time/rate"

	"clove.run/clove/agent"
	"clove.run/clove/api"
)

// Bounds of the calls of one run. Each is a process that enters its sandbox, which takes root's time and
// not the agent's.
const (
	callsMost      = 16 // at once; another is refused
	callsPerSecond = 25 // another waits
	callsBurst     = 50
)

// places are those of calls at work. The zero value is ready.
type places struct {
	mu   sync.Mutex // guards the following
	runs map[agent.ID]*placesOf
}

type placesOf struct {
	taken int
	pace  *rate.Limiter
}

// enter takes a place for a call of a run, and waits for its turn.
func (p *places) enter(ctx context.Context, run agent.ID) (leave func(), err error) {
	of := p.take(run)
	if of == nil {
		return nil, api.Failure(api.CodeBusy, "wait for one of them to end", "%d tools of the run are at work", callsMost)
	}
	leave = func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		of.taken--
	}
	if err := of.pace.Wait(ctx); err != nil {
		leave()
		return nil, context.Cause(ctx)
	}
	return leave, nil
}

// take takes a place; nil: there is none. Runs that have called nothing for a while are forgotten.
func (p *places) take(run agent.ID) *placesOf {
	p.mu.Lock()
	defer p.mu.Unlock()
	for id, of := range p.runs {
		if of.taken == 0 && of.pace.Tokens() >= callsBurst && id != run {
			delete(p.runs, id)
		}
	}
	of := p.runs[run]
	switch {
	case of == nil:
		of = &placesOf{pace: rate.NewLimiter(callsPerSecond, callsBurst)}
		if p.runs == nil {
			p.runs = map[agent.ID]*placesOf{}
		}
		p.runs[run] = of
	case of.taken >= callsMost:
		return nil
	}
	of.taken++
	return of
}
