//go:build root

package integration

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/methods"
	"clove.run/clove/client"
	"clove.run/clove/internal/testhost"
)

// removing are the failpoints at which files or records are made or removed.
var removing = map[string][]failpoint{
	"cloved": append([]failpoint{{"starterSpawned", "", true}, {"starterOrdered", "", true}, {"removeEmptied", "", true}}, noted("removed")...),
	"supervisor": append(append([]failpoint{{"superviseOpened", "", true}, {"registerDirectory", "", true}, {"registered", "", false},
		{"finishKilled", "", false}, {"finishTornDown", "", true}, {"finishRecorded", "", false}, {"superviseEnded", "", false}},
		launched("rootfs", "start", "orders")...), noted("starting", "ended")...),
}

// TestRemovalFailpoints fails and dies at each of them, in turn for a run with --rm, a start that
// fails, and a run that is removed. Removed files are never lost: settle finds nothing below
// lost/, in the logs and in the layers. Each way must have reached at least half of the points.
func TestRemovalFailpoints(t *testing.T) {
	f := newFaulty(t)
	every, number := testhost.Sample(1, 4, 9), 0
	for name, steps := range removals {
		if done := f.walk(t, steps, failpoint{}, "", ""); done != len(steps) {
			t.Fatalf("control of %s: %d of %d requests succeed", name, done, len(steps))
		}
		reached, tried := 0, 0
		for process, points := range removing {
			for _, point := range points {
				for _, how := range []string{"die", "error"} {
					if how == "error" && !point.errors {
						continue
					}
					if number++; number%every != 0 {
						continue
					}
					tried++
					t.Run(name+"/"+process+"/"+point.name+point.at+"/"+how, func(t *testing.T) { f.pass(t, steps, point, process, how) })
					if _, err := os.Stat(f.seen()); err == nil {
						reached++
					}
				}
			}
		}
		if reached < tried/2 {
			t.Errorf("%s: %d of %d failpoints were reached", name, reached, tried)
		}
	}
	if _, err := os.Stat(filepath.Join(f.state, "lost")); !os.IsNotExist(err) {
		t.Errorf("there is something lost: %v", err)
	}
}

var removals = map[string][]wayStep{
	"with --rm": {{"forget", func(ctx context.Context, c *client.Client, f *faulty) error {
		spec := f.spec("forgotten", "echo x; echo x >file; exit 3")
		spec.Remove = true
		return startAndWait(ctx, c, spec)
	}, "forgotten", isGone}},
	"failed start": {{"fail", func(ctx context.Context, c *client.Client, f *faulty) error {
		spec := f.spec("failing", "")
		spec.Command = []string{"/no/such/program"}
		return startAndWait(ctx, c, spec)
	}, "failing", nil}},
	"removed": {{"run", func(ctx context.Context, c *client.Client, f *faulty) error {
		return startAndWait(ctx, c, f.spec("short", "echo x; echo x >file"))
	}, "short", nil}, {"remove", func(ctx context.Context, c *client.Client, _ *faulty) error {
		return client.Perform(ctx, c, methods.RunRemove, api.RemoveParams{RunParams: api.RunParams{Run: "short"}})
	}, "short", isGone}},
}

// startAndWait takes a start that fails for one, and a run that is gone for one that has ended.
func startAndWait(ctx context.Context, c *client.Client, spec agent.Spec) error {
	if _, err := client.Do(ctx, c, methods.RunStart, api.StartParams{Spec: spec}); err != nil {
		if agent.KindOf(err) == agent.KindConflict {
			return nil
		}
		return err
	}
	_, err := client.Do(ctx, c, methods.RunWait, api.RunParams{Run: spec.Name})
	if agent.KindOf(err) == agent.KindNotFound && !lostAnswer(err) {
		return nil
	}
	return err
}
