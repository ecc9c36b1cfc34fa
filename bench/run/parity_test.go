package run

import (
	"context"
	"testing"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/bench/suite"
	"clove.run/clove/policies/host"
)

// asked is a Sandboxes that keeps the limits of the last run.
type asked struct {
	ended
	limits agent.Limits
}

func (a *asked) Run(ctx context.Context, spec agent.Spec, out Output) (agent.Record, error) {
	a.limits = spec.Limits
	return a.ended.Run(ctx, spec, out)
}

// The probe has the conditions of the attempts, but not their time: a task may have less than a
// shell needs.
func TestProbeHasItsOwnTime(t *testing.T) {
	t.Parallel()
	with := &asked{ended: ended{record: agent.Record{Status: agent.StatusExited}}}
	s := &suite.Suite{Name: "s", Seeds: []int64{1}, Limits: suite.Limits{Memory: "64M", Timeout: "20ms", CPUTime: "10ms"}}
	r := &Runner{Suite: s, Dir: t.TempDir(), Sandboxes: with, Host: host.Host{Dir: "/", CPUs: []int{0}, Base: host.BaseDirs}}
	if _, err := r.Probe(t.Context()); err != nil {
		t.Fatal(err)
	}
	if l := with.limits; l.WallClock != time.Minute || l.CPUTime != 0 || l.MemoryBytes != 64<<20 {
		t.Errorf("%+v", l)
	}
}
