//go:build root

package runtime

import (
	"context"
	"fmt"
	"testing"
	"time"

	"clove.run/clove/agent"
)

// TestExecCountsAsTheAgents: if the agent uses all processes of its limit, an exec session
// fails, and the agent is not affected.
func TestExecCountsAsTheAgents(t *testing.T) {
	a := startLive(t, `exec python3 -c '
import os, signal
try:
    while os.fork(): pass
except BlockingIOError: pass
signal.pause()'`, func(s *agent.Spec) { s.Limits.Pids = 40 })
	full := func() bool {
		stats, err := a.Stats()
		if err != nil {
			t.Fatal(err)
		}
		return *stats.Pids == stats.Limits.Pids
	}
	for deadline := time.Now().Add(soon); !full(); {
		if time.Now().After(deadline) {
			t.Fatal("control: the agent does not fill its limit")
		}
	}
	if r := a.exec(agent.Exec{Command: []string{"true"}}, ""); r.code != agent.ExitStartFailed || r.err == nil {
		t.Errorf("%+v", r)
	}
	if err := a.Update(agent.Update{Pids: as[int64](80)}); err != nil {
		t.Fatal(err)
	}
	if got := a.shell("echo free"); got != "free\n" {
		t.Errorf("%q", got)
	}
}

func TestManyAtOnce(t *testing.T) {
	a := startLive(t, "exec sleep 1000", nil)
	const many = 16
	ended := make(chan error, many)
	for i := range many {
		go func() {
			code, err := a.Exec(context.Background(), agent.Exec{Command: []string{"sh", "-c", fmt.Sprintf("exit %d", i)}}, IO{})
			if err == nil && code != i {
				err = fmt.Errorf("%d ended with %d", i, code)
			}
			ended <- err
		}()
	}
	for range many {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	if all, err := a.Processes(); err != nil || len(all) != 2 {
		t.Errorf("left: %+v, %v", all, err)
	}
}

// TestTheEndMeetsWhatIsOnItsWayIn: the agent ends at a random moment of an entry, and neither
// waits for the other.
func TestTheEndMeetsWhatIsOnItsWayIn(t *testing.T) {
	for i := range 12 {
		a := startLive(t, "exec sleep 1000", nil)
		ended := make(chan execResult, 3)
		for range cap(ended) {
			go func() {
				code, err := a.Exec(context.Background(), agent.Exec{Command: []string{"sleep", "1000"}}, IO{})
				ended <- execResult{code: code, err: err}
			}()
		}
		time.AfterFunc(time.Duration(i)*5*time.Millisecond, func() { a.Stop(0) })
		a.ends()
		for range cap(ended) {
			if r := <-ended; r.code != agent.ExitKilled && r.err == nil {
				t.Errorf("%+v", r)
			}
		}
	}
}
