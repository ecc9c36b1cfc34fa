package daemon

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/methods"
	"clove.run/clove/client"
)

// Starts are limited at a time: while one is under way the next one waits, `clove ps` gives
// that reason, and its caller is answered when the agent executes. The control is a reason
// that does not pass by itself.
func TestStartsAreRamped(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(c *Config) { c.StartsAtOnce = 1 })
	c := r.serve()
	began, proceed := r.hold("slow")
	first, second := make(chan error, 1), make(chan error, 1)
	go func() {
		_, err := client.Do(context.Background(), c, methods.RunStart, api.StartParams{Spec: spec("slow")})
		first <- err
	}()
	select {
	case <-began:
	case <-within(t).Done():
		t.Fatal("the first is not started")
	}
	next := spec("next")
	go func() {
		result, err := client.Do(context.Background(), c, methods.RunStart, api.StartParams{Spec: next})
		if err == nil && (result.Reason != "" || result.Run.State != agent.StateRunning) {
			err = fmt.Errorf("it is %s: %s", result.Run.State, result.Reason)
		}
		second <- err
	}()
	for {
		reason, looked := r.d.reconciler.reason(next.ID)
		if strings.Contains(reason, "being started") {
			break
		}
		select {
		case <-looked:
		case <-within(t).Done():
			t.Fatal("the second does not wait")
		}
	}
	result, err := client.Do(within(t), c, methods.RunStart, api.StartParams{Spec: spec("later"), DelayNS: int64(time.Hour)})
	if err != nil || result.Reason == "" {
		t.Errorf("control: a delay: %+v, %v", result, err)
	}
	if len(second) > 0 {
		t.Error("the caller of the second start was answered while it waits")
	}
	proceed()
	must(t, <-first)
	must(t, <-second)
}
