package main

import (
	"fmt"
	"sync"
	"time"

	"clove.run/clove/runtime"
)

// slowStart is how long a start may take before its step is shown.
const slowStart = time.Second

// showStart shows on a terminal the step of a start that takes long, in a line that is cleared. begins is told each
// step; end may be called more than once.
func (s *screen) showStart() (begins func(step string), end func()) {
	if s.json || !isTerminal(s.err) {
		return func(string) {}, func() {}
	}
	steps, over, gone := make(chan string), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(gone)
		step, began, shown := "", time.Now(), false
		look := time.NewTicker(slowStart)
		defer look.Stop()
		for {
			select {
			case step = <-steps:
			case <-look.C:
				shown = true
			case <-over:
				if shown {
					fmt.Fprint(s.err, "\r\x1b[K")
				}
				return
			}
			if shown {
				fmt.Fprintf(s.err, "\r\x1b[Kstarting: %s, %s", step, time.Since(began).Round(time.Second))
			}
		}
	}()
	begins = func(step string) {
		select {
		case steps <- step:
		case <-gone:
		}
	}
	return begins, sync.OnceFunc(func() { close(over); <-gone })
}

// showSteps is showStart for a run that this process supervises.
func (s *screen) showSteps(streams *runtime.IO) (end func()) {
	streams.Begins, end = s.showStart()
	streams.Started = func(*runtime.Live) { end() }
	return end
}
