//go:build root

package integration

import (
	"fmt"
	"testing"
	"time"

	"clove.run/clove/api"
	"clove.run/clove/api/methods"
)

// Children have together no more of the CPUs than their parent's limit, which each of them has too. The
// control is a parent without a limit. Load of the machine cannot make the bounded ones use more; the
// control waits until the machine gives more than the bound.
func TestChildrenShareTheirParentsCPUs(t *testing.T) {
	d := newCloved(t)
	const bound, most, children = 0.5, 0.5 * 1.3, 3
	for _, keys := range [][]string{{"limits: {cpus: 0.5}"}, nil} {
		name := fmt.Sprintf("lead%d", len(keys))
		file := family(t, `
for i in range(3): a.call("agent.spawn", manifest="worker", limits={"cpus": 0.5})
time.sleep(1000)
`, "while True: pass", keys...)
		d.ok("run", "-d", "--name", name, file)
		busy := d.running(name, children)
		if len(keys) == 0 {
			until(t, "control: the children of a parent without a limit use more", func() bool { return d.busy(busy) > most })
		} else if got := d.busy(busy); got <= 0 || got > most {
			t.Errorf("the children of a parent with %v CPUs use %.2f", bound, got)
		}
		d.ok("stop", "-t", "0", name)
	}
}

// busy is how many CPUs children use together, on average of three seconds.
func (d *cloved) busy(children []api.Child) float64 {
	d.t.Helper()
	began, before := time.Now(), d.processorTime(children)
	time.Sleep(3 * time.Second)
	after := d.processorTime(children)
	return float64(after-before) / float64(time.Since(began))
}

// processorTime is what children have used together.
func (d *cloved) processorTime(children []api.Child) (sum time.Duration) {
	d.t.Helper()
	for _, child := range children {
		var now api.StatsResult
		d.api(methods.RunStats.Name, api.RunParams{Run: string(child.ID)}, &now)
		sum += time.Duration(*now.Stats.Usage.CPUMS) * time.Millisecond
	}
	return sum
}
