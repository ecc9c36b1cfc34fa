package runtime

import (
	"fmt"
	"io"
	"time"
)

// trace writes what --debug shows: the plan, and what each step took.
type trace struct {
	to    io.Writer // nil: nothing is traced
	began time.Time
	done  func(name string, began time.Time) // called after each step; nil: none
}

func newTrace(streams IO) *trace {
	return &trace{to: streams.Debug, began: time.Now(), done: streams.Step}
}

func (t *trace) step(name string, began time.Time) {
	if t.done != nil {
		t.done(name, began)
	}
	if t.to != nil {
		fmt.Fprintf(t.to, "clove: %8.3f ms  %-10s %.3f ms\n", ms(time.Since(t.began)), name, ms(time.Since(began)))
	}
}

func (t *trace) plan(plan fmt.Stringer) {
	if t.to != nil {
		fmt.Fprint(t.to, plan.String())
	}
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
