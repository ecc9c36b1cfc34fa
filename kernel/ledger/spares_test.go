package ledger

import (
	"sync"
	"testing"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/audit"
)

// A spare may be retired while it is drawn, which the race detector watches: it is not offered any
// more. The control is one that is drawn to its end.
func TestASpareIsRetiredWhileItIsDrawn(t *testing.T) {
	t.Parallel()
	p := &spares{runs: map[agent.ID][]*spare{}, taken: map[string]audit.Entry{}}
	run := agent.Run{Spec: agent.Spec{ID: agent.NewID()}}
	whole := p.begin(run)
	if !p.ready(whole, whole.drawn, time.NewTimer(time.Hour)) || len(p.idle(run.Spec.ID)) != 1 {
		t.Error("control: it is not offered")
	}
	next := p.begin(run)
	drawn := next.drawn
	var ended sync.WaitGroup
	ended.Go(func() {
		if all, rows := p.end(ofRun(run.Spec.ID)); len(all) != 2 || len(rows) != 2 {
			t.Errorf("%d are retired, %d rows", len(all), len(rows))
		}
	})
	for p.may(next) {
		time.Sleep(time.Microsecond)
	}
	if p.ready(next, drawn, time.NewTimer(time.Hour)) {
		t.Error("it is offered after its end")
	}
	ended.Wait()
	if idle := p.idle(run.Spec.ID); len(idle) != 0 {
		t.Errorf("%d can be taken", len(idle))
	}
}
