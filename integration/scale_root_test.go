//go:build root

package integration

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/methods"
	"clove.run/clove/client"
	"clove.run/clove/internal/linear"
	"clove.run/clove/internal/testhost"
	"clove.run/clove/policies"
)

// sleeper is a complete spec of a small agent that only waits.
func sleeper(name string) agent.Spec {
	spec := policies.Standard()
	spec.ID, spec.Name = agent.NewID(), name
	spec.Command, spec.Env = []string{"/bin/sleep", "3600"}, []string{"PATH=/usr/bin:/bin"}
	spec.Limits.MemoryBytes, spec.Limits.MemorySwapBytes, spec.Limits.DiskBytes = 32<<20, 32<<20, 64<<20
	spec.Limits.StopGrace = 100 * time.Millisecond
	return spec
}

// The answers to callers that compete for a few names of real agents have one common order.
func TestRealAgentsHaveOneOrder(t *testing.T) {
	d := newCloved(t)
	c, err := client.Dial(context.Background(), d.socket)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	l := linear.Load{Workers: 16, Operations: 600, Groups: 4, Spec: sleeper, Seed: 1}
	history, err := l.Run(context.Background(), linear.Cloved{Client: c, Command: []string{"/bin/true"}})
	if err == nil {
		err = linear.Check(history, testhost.Patience(time.Minute))
	}
	if err != nil {
		t.Error(err)
	}
}

// held returns what the kernel says that cloved holds.
func (d *cloved) held() (descriptors, threads int) {
	d.t.Helper()
	proc := fmt.Sprintf("/proc/%d", d.cmd.Process.Pid)
	for dir, count := range map[string]*int{"fd": &descriptors, "task": &threads} {
		entries, err := os.ReadDir(filepath.Join(proc, dir))
		if err != nil {
			d.t.Fatal(err)
		}
		*count = len(entries)
	}
	return descriptors, threads
}

// lives starts and ends real agents, some at a time.
func (d *cloved) lives(c *client.Client, prefix string, number int) {
	d.t.Helper()
	var all sync.WaitGroup
	for first := range 4 {
		all.Go(func() {
			for i := first; i < number; i += 4 {
				name := fmt.Sprintf("%s-%d", prefix, i)
				if _, err := client.Do(context.Background(), c, methods.RunStart, api.StartParams{Spec: sleeper(name)}); err != nil {
					d.t.Error(err)
				}
				if err := client.Perform(context.Background(), c, methods.RunRemove, api.RemoveParams{RunParams: api.RunParams{Run: name}, Force: true}); err != nil {
					d.t.Error(err)
				}
			}
		})
	}
	all.Wait()
}

// After many agents cloved has as many descriptors and threads as after the first ones.
func TestRealAgentsLeaveNothing(t *testing.T) {
	d := newCloved(t)
	c, err := client.Dial(context.Background(), d.socket)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	// A leak with every second agent is found; threads of a busy moment are not counted as
	// one.
	first, later, slack := testhost.Sample(40, 40, 16), testhost.Sample(200, 100, 40), 16
	d.lives(c, "first", first)
	descriptors, threads := d.held()
	d.lives(c, "later", later)
	nowDescriptors, nowThreads := d.held()
	// cloved releases what it holds for the last agents with their supervisors, a moment after
	// the runs.
	for began := time.Now(); nowDescriptors > descriptors+slack && time.Since(began) < patience(); time.Sleep(50 * time.Millisecond) {
		nowDescriptors, nowThreads = d.held()
	}
	t.Logf("descriptors %d, then %d; threads %d, then %d", descriptors, nowDescriptors, threads, nowThreads)
	if nowDescriptors > descriptors+slack || nowThreads > threads+slack {
		t.Errorf("descriptors %d, then %d; threads %d, then %d", descriptors, nowDescriptors, threads, nowThreads)
	}
	if listed := d.ok("ps", "-a"); strings.Contains(listed, "later") {
		t.Errorf("left:\n%s", listed)
	}
}
