//go:build root

package runtime

import (
	"context"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/internal/testhost"
)

// leaves starts a process that no process group, session or parent leads to, and is ready.
const leaves = `trap 'exit 9' TERM; (setsid sleep 1002 &); until grep -qs '(sleep)' /proc/[0-9]*/stat; do sleep 0.01; done; echo ready; `

// left reports whether that process is in the sandbox.
func (a *liveAgent) left() bool {
	a.t.Helper()
	processes, err := a.Processes()
	if err != nil {
		a.t.Fatal(err)
	}
	return slices.ContainsFunc(processes, func(p agent.Process) bool { return slices.Equal(p.Command, []string{"sleep", "1002"}) })
}

// TestASessionThatIsCutOffEndsAllThatItStarted: by its caller, by its time, or with KillRest
// by its own end. The control ends by itself, and leaves a process, as with docker exec.
func TestASessionThatIsCutOffEndsAllThatItStarted(t *testing.T) {
	for name, row := range map[string]struct {
		script string
		change func(*agent.Exec)
		cut    bool // by the caller, once it is ready
		code   int
		left   bool
	}{
		"control":              {script: leaves + "exit 3", code: 3, left: true},
		"rest":                 {script: leaves + "exit 3", change: func(e *agent.Exec) { e.KillRest = true }, code: 3},
		"caller":               {script: leaves + "while :; do sleep 0.02; done", cut: true, code: 9},
		"caller, deaf to TERM": {script: "trap '' TERM; " + strings.TrimPrefix(leaves, "trap 'exit 9' TERM; ") + "while :; do sleep 1000; done", cut: true, code: agent.ExitKilled},
		"time":                 {script: leaves + "while :; do sleep 0.02; done", change: func(e *agent.Exec) { e.Timeout = testhost.Patience(time.Second) }, code: agent.ExitTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			a := startLive(t, "exec perl -e 'sleep 1000'", func(s *agent.Spec) { s.Limits.StopGrace = 300 * time.Millisecond })
			e := agent.Exec{Command: []string{"sh", "-c", row.script}}
			if row.change != nil {
				row.change(&e)
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			ended := a.beginExec(ctx, e)
			if row.cut {
				if !a.left() {
					t.Error("control: it is not there before")
				}
				cancel()
			}
			r := <-ended
			if r.code != row.code || (r.err != nil) != (row.code == agent.ExitTimeout) {
				t.Errorf("%+v", r)
			}
			if left := a.left(); left != row.left {
				t.Errorf("the process that it started is there: %v", left)
			}
			if err := a.Stop(0); err != nil {
				t.Fatal(err)
			}
			a.ends()
		})
	}
}

// TestADetachedSessionStays: it executes when ExecDetached returns. The control is a session
// with a caller that has gone.
func TestADetachedSessionStays(t *testing.T) {
	a := startLive(t, "exec perl -e 'sleep 1000'", nil)
	ctx, cancel := context.WithCancel(t.Context())
	control := a.beginExec(ctx, agent.Exec{Command: []string{"sh", "-c", "echo ready; exec perl -e 'sleep 1000'"}})
	if code, err := a.ExecDetached(t.Context(), agent.Exec{Command: []string{"sleep", "1002"}}); code != 0 || err != nil {
		t.Fatalf("%d, %v", code, err)
	}
	cancel()
	if r := <-control; r.code != 143 {
		t.Errorf("control: %+v", r)
	}
	if !a.left() {
		t.Error("it has ended")
	}
	if code, err := a.ExecDetached(t.Context(), agent.Exec{Command: []string{"no-such-command"}}); code != agent.ExitNotFound || err == nil {
		t.Errorf("%d, %v", code, err)
	}
	if code, err := a.ExecDetached(t.Context(), agent.Exec{Command: []string{"sh", "-c", "echo no reader >&2 && exec sleep 1002"}, Timeout: time.Second}); code != 0 || err != nil {
		t.Errorf("%d, %v", code, err)
	}
}

// TestCgroupsOfSessionsDoNotPileUp: those that are left belong to sessions with processes.
func TestCgroupsOfSessionsDoNotPileUp(t *testing.T) {
	a := startLive(t, "exec perl -e 'sleep 1000'", nil)
	a.shell("(setsid sleep 1002 >/dev/null 2>&1 &)")
	for range 10 {
		a.shell("true")
	}
	var found []string
	if err := a.do(func() error {
		for _, dir := range a.s.run.Lease.Cgroups {
			_ = filepath.WalkDir(dir, func(path string, _ fs.DirEntry, _ error) error {
				if strings.HasPrefix(filepath.Base(path), "session-") && strings.Count(path, "session-") == 1 {
					found = append(found, path)
				}
				return nil
			})
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	slices.Sort(found)
	// The last session's may take a moment, until the next session.
	if found = slices.Compact(found); len(found) == 0 || len(found) > 2 || filepath.Base(found[0]) != "session-1" {
		t.Errorf("%v", found)
	}
}
