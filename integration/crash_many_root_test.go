//go:build root

package integration

import (
	"bytes"
	"context"
	"encoding/json"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/internal/testhost"
)

// list returns every stored run.
func (h *host) list() []agent.Run {
	h.t.Helper()
	var runs []agent.Run
	r := h.clove("ps", "-a", "--json")
	if err := json.Unmarshal([]byte(r.stdout), &runs); err != nil {
		h.t.Fatalf("ps: %v\n%s%s", err, r.stdout, r.stderr)
	}
	return runs
}

// TestKilledAtRandomMoments: clove is killed anywhere between its first instruction and its
// end; the next run leaves nothing behind. The control: the kills did leave something, and hit
// runs at every stage.
func TestKilledAtRandomMoments(t *testing.T) {
	h := newHost(t)
	rounds := testhost.Sample(300, 60, 20)
	h.clove("run", "--rm", "--", "true") // makes the template for layers
	at := h.moments(2)
	killed, looks, dirty := 0, 0, 0
	for i := range rounds {
		if at.kills(i%2 == 0) {
			killed++
		}
		if i%10 == 0 || dirty == 0 { // with few rounds the test looks more often
			looks++
			if h.clove("check").code != 0 {
				dirty++
			}
		}
	}
	if next := h.clove("run", "--rm", "--", "true"); next.code != 0 {
		t.Errorf("the next run: exit %d\n%s%s", next.code, next.stdout, next.stderr)
	}
	if check := h.clove("check"); check.code != 0 {
		t.Errorf("left after the next run:\n%s%s", check.stdout, check.stderr)
	}
	ends := map[agent.Status]int{}
	for _, run := range h.list() {
		if run.State != agent.StateEnded || run.Record == nil || run.Lease != nil {
			t.Errorf("%s is %s, lease %v", run.Spec.ID, run.State, run.Lease)
			continue
		}
		ends[run.Record.Status]++
	}
	t.Logf("%d rounds, at last within %v, %d killed before their end, %d of %d looks found leftovers; ends: %v", rounds, at.spread, killed, dirty, looks, ends)
	// On a busy machine, every kill of a short test may come before the run's end.
	allKilled := rounds >= 100 && killed == rounds
	if killed < rounds/4 || allKilled || dirty == 0 || ends[agent.StatusKilled] == 0 {
		t.Errorf("control: %d kills, %d left something, ends %v: the moments are wrong", killed, dirty, ends)
	}
	if left, _ := os.ReadDir(h.run); len(left) != 0 {
		t.Errorf("%s holds %v", h.run, left)
	}
}

// moments chooses when to kill a run, from its first instruction to shortly after its end. It
// follows the time that runs take: on a busy machine the next run may take several times
// longer, or much less.
type moments struct {
	h      *host
	random *rand.Rand
	flags  []string
	spread time.Duration
}

// moments begins with the duration of one run.
func (h *host) moments(seed uint64, flags ...string) *moments {
	h.t.Helper()
	began := time.Now()
	h.clove(append(append([]string{"run", "--rm"}, flags...), "--", "true")...)
	return &moments{h: h, random: rand.New(rand.NewPCG(seed, 300)), flags: flags, spread: time.Since(began) * 4 / 3}
}

// kills reports whether the kill of the next run found clove alive. Three in four do; some
// come after the end.
func (m *moments) kills(remove bool) bool {
	m.h.t.Helper()
	killed := m.h.killedAfter(time.Duration(m.random.Int64N(int64(m.spread))), remove, m.flags...)
	if killed {
		m.spread += m.spread / 10
	} else {
		m.spread -= m.spread / 4
	}
	return killed
}

// killedAfter reports whether the kill found clove alive.
func (h *host) killedAfter(moment time.Duration, remove bool, flags ...string) bool {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience())
	defer cancel()
	cmd := h.command(ctx, append(append([]string{"run", "--rm=" + strconv.FormatBool(remove)}, flags...), "--", "true")...)
	if err := h.begin(cmd); err != nil {
		h.t.Fatal(err)
	}
	kill := time.AfterFunc(moment, func() { cmd.Process.Kill() })
	defer kill.Stop()
	cmd.Wait()
	status := cmd.ProcessState.Sys().(syscall.WaitStatus)
	return status.Signaled()
}

// TestManyAtOnce: all runs end well and are stored.
func TestManyAtOnce(t *testing.T) {
	h := newHost(t)
	many := testhost.Sample(200, 60, 12)
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience())
	defer cancel()
	began := time.Now()
	var wait sync.WaitGroup
	failures := make([]string, many)
	for i := range many {
		cmd := h.command(ctx, "run", "--name=many-"+strconv.Itoa(i), "--", "/bin/true")
		wait.Go(func() { failures[i] = failureOf(cmd) })
	}
	wait.Wait()
	took := time.Since(began)
	for i, failure := range failures {
		if failure != "" {
			t.Errorf("run %d: %s", i, failure)
		}
	}
	names := map[string]bool{}
	for _, run := range h.list() {
		if run.Record != nil && run.Record.Status == agent.StatusExited && run.Record.ExitCode == 0 {
			names[run.Spec.Name] = true
		}
	}
	if len(names) != many {
		t.Errorf("%d of %d runs are remembered", len(names), many)
	}
	t.Logf("%d runs at once took %v, %v each", many, took, took/time.Duration(many))
}

func failureOf(cmd *exec.Cmd) string {
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Run(); err != nil {
		return err.Error() + ": " + stderr.String()
	}
	return ""
}
