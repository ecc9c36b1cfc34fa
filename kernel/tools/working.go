package tools

import (
	"cmp"
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

// working counts the calls of runs that are at work. The zero value is ready.
type working struct {
	mu   sync.Mutex // guards the following
	runs map[agent.ID]*workingOf
}

type workingOf struct {
	taken int
	pace  *rate.Limiter
}

// enter takes a place for a call of a run, and waits for its turn.
func (w *working) enter(ctx context.Context, run agent.ID) (leave func(), err error) {
	of := w.take(run)
	if of == nil {
		return nil, api.Failure(api.CodeBusy, "wait for one of them to end", "%d tools of the run are at work", callsMost)
	}
	leave = func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		of.taken--
	}
	if err := of.pace.Wait(ctx); err != nil {
		leave()
		return nil, cmp.Or(context.Cause(ctx), err) // the turn may come behind the deadline
	}
	return leave, nil
}

// take takes a place; nil: there is none. Runs that have called nothing for a while are forgotten.
func (w *working) take(run agent.ID) *workingOf {
	w.mu.Lock()
	defer w.mu.Unlock()
	for id, of := range w.runs {
		if of.taken == 0 && of.pace.Tokens() >= callsBurst && id != run {
			delete(w.runs, id)
		}
	}
	of := w.runs[run]
	switch {
	case of == nil:
		of = &workingOf{pace: rate.NewLimiter(callsPerSecond, callsBurst)}
		if w.runs == nil {
			w.runs = map[agent.ID]*workingOf{}
		}
		w.runs[run] = of
	case of.taken >= callsMost:
		return nil
	}
	of.taken++
	return of
}
