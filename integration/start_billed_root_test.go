//go:build root

package integration

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"clove.run/clove/agent"
)

// TestTheStartIsNotBilled: the record's CPU time is what the agent's processes themselves
// report, and the time of clove's start is a figure of its own. The control adds the start, as
// the cgroup does: the sum is further from the truth.
func TestTheStartIsNotBilled(t *testing.T) {
	h := newHost(t)
	const busy = `
import time
while time.process_time() < 0.4:
    pass
print(int(time.process_time() * 1000))
`
	r := h.agent(nil, python, "-c", busy)
	u := r.record.Usage
	own, err := strconv.ParseInt(strings.TrimSpace(r.stdout), 10, 64)
	if err != nil || u.CPUMS == nil || u.StartCPUMS == nil || u.StartMemoryPeakBytes == nil || u.MemoryPeakBytes == nil {
		t.Fatalf("%q, and in the record %s\n%s", r.stdout, usageText(t, u), r.stderr)
	}
	off, billed := abs(*u.CPUMS-own), abs(*u.CPUMS+*u.StartCPUMS-own)
	t.Logf("the agent says %d ms, the record %d beside %d for the start, whose peak was %d of %d bytes", own, *u.CPUMS, *u.StartCPUMS,
		*u.StartMemoryPeakBytes, *u.MemoryPeakBytes)
	if off >= billed || off > *u.StartCPUMS/2+5 {
		t.Errorf("the agent says %d ms, the record %d; with the start it would be %d", own, *u.CPUMS, *u.CPUMS+*u.StartCPUMS)
	}
	if *u.StartMemoryPeakBytes < 1<<20 || *u.StartMemoryPeakBytes > *u.MemoryPeakBytes {
		t.Errorf("the start had a peak of %d bytes, and all together %d", *u.StartMemoryPeakBytes, *u.MemoryPeakBytes)
	}
}

// usageText formats the figures as in the record.
func usageText(t *testing.T, u agent.Usage) string {
	t.Helper()
	text, err := json.Marshal(u)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func abs(n int64) int64 { return max(n, -n) }

// TestTheLimitIsTheAgentsOwn: CPU time that the start used is not subtracted from --cpu-time.
// The controls are an agent that uses up its limit, and what would remain after a subtraction.
func TestTheLimitIsTheAgentsOwn(t *testing.T) {
	h := newHost(t)
	idle := []string{"sleep", "0.5"}
	u := h.agent(nil, idle...).record.Usage
	if u.CPUMS == nil || u.StartCPUMS == nil || *u.StartCPUMS <= *u.CPUMS {
		t.Fatalf("the control shows nothing: a start is not dearer than a sleeper: %s", usageText(t, u))
	}
	limit := strconv.FormatInt(*u.StartCPUMS, 10) + "ms"
	h.agent([]string{"--cpu-time", limit}, idle...).want(t, agent.StatusExited, 0, "")
	h.agent([]string{"--cpu-time", limit}, "sh", "-c", "while :; do :; done").want(t, agent.StatusCPUTime, agent.ExitTimeout, "")
}

// TestACommandThatNeverExecutedUsedNothing: all counted time is the start's.
func TestACommandThatNeverExecutedUsedNothing(t *testing.T) {
	h := newHost(t)
	r := h.agent(nil, "/no/such/command")
	r.want(t, agent.StatusStartFailed, agent.ExitNotFound, "")
	if u := r.record.Usage; u.CPUMS == nil || *u.CPUMS != 0 || u.StartCPUMS == nil || *u.StartCPUMS == 0 {
		t.Errorf("the record says %s", usageText(t, u))
	}
}
