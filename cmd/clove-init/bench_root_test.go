//go:build root

package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// BenchmarkStart measures the time from the execve(2) of clove-init to the moment just before
// the agent's, and PID 1's memory and threads beside a running agent.
func BenchmarkStart(b *testing.B) {
	b.Setenv("STAGE_CLOCK", "1")
	var took []time.Duration
	var private, threads float64
	for b.Loop() {
		box := start(b, command("/bin/cat"))
		began := box.started().BootTimeNS
		private, threads = footprint(b, box.process.Process.Pid)
		box.stdin.Close()
		box.exited()
		var executed int64
		if _, err := fmt.Sscan(box.text(), &executed); err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Duration(began-executed))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[0].Microseconds()), "µs-min")
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "µs-p50")
	b.ReportMetric(float64(took[len(took)*95/100].Microseconds()), "µs-p95")
	b.ReportMetric(private, "private-KiB")
	b.ReportMetric(threads, "threads")
}

// footprint reads private memory in KiB and the number of threads.
func footprint(b *testing.B, pid int) (private, threads float64) {
	rollup, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	check(b, err)
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	check(b, err)
	for line := range strings.Lines(string(rollup) + string(status)) {
		var n float64
		name, rest, _ := strings.Cut(line, ":")
		fmt.Sscan(rest, &n)
		switch name {
		case "Private_Dirty", "Private_Clean":
			private += n
		case "Threads":
			threads = n
		}
	}
	return private, threads
}
