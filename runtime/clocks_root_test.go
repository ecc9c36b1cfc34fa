//go:build root

package runtime

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"clove.run/clove/agent"
)

// readClocks prints the monotonic clock, the boot clock, the uptime and the time namespace.
const readClocks = `perl -MTime::HiRes=clock_gettime,CLOCK_MONOTONIC -e '
	open F, "/proc/uptime"; my ($up) = split " ", <F>;
	printf "%.3f %.3f %.3f %s\n", clock_gettime(CLOCK_MONOTONIC), clock_gettime(7), $up, readlink "/proc/self/ns/time"'`

// late is far more than a launch takes.
const late = 60.0

// clocksOf reads a line of readClocks.
func clocksOf(t *testing.T, line string) (seconds [3]float64, namespace string) {
	t.Helper()
	if _, err := fmt.Sscanf(line, "%f %f %f %s", &seconds[0], &seconds[1], &seconds[2], &namespace); err != nil {
		t.Fatalf("%q: %v", line, err)
	}
	return seconds, namespace
}

// Two runs and their exec sessions find the clocks at one start, before or after the host's.
// The control is a run without a start, which has the host's clocks and time namespace.
func TestClocksBeginAtOneTime(t *testing.T) {
	host, err := os.Readlink("/proc/self/ns/time")
	if err != nil {
		t.Skip("the kernel has no time namespaces")
	}
	for _, start := range []time.Duration{0, time.Second, time.Second, agent.ClockStartCeiling} {
		t.Run(start.String(), func(t *testing.T) {
			a := startLive(t, readClocks+"; sleep 1000", func(s *agent.Spec) { s.ClockStart = start })
			base := [3]float64{start.Seconds(), start.Seconds(), start.Seconds()}
			if now := hostClocks(); start == 0 {
				base = [3]float64{now.monotonic.Seconds() - late, now.boot.Seconds() - late, now.boot.Seconds() - late}
			}
			for by, line := range map[string]string{"agent": a.line(), "exec": a.shell(readClocks)} {
				got, namespace := clocksOf(t, line)
				for i, seconds := range got {
					if seconds < base[i] || seconds > base[i]+2*late {
						t.Errorf("%s: clock %d is at %f, not at %f", by, i, seconds, base[i])
					}
				}
				if (namespace == host) != (start == 0) {
					t.Errorf("%s: it is in the time namespace %s, the host in %s", by, namespace, host)
				}
			}
			if stats, err := a.Stats(); err != nil || stats.WallMS < 0 || stats.WallMS > 1000*int64(late) {
				t.Errorf("it runs since %d ms, %v", stats.WallMS, err)
			}
			a.cancel()
			if held := a.ends().Enforced[agent.ControlClockStart]; (held == "time namespace") != (start > 0) {
				t.Errorf("the record says %q", held)
			}
		})
	}
}

// The deadline is clove-init's and, where that does not answer, the supervisor's: the two read
// different clocks.
func TestDeadlinesHoldOnShiftedClocks(t *testing.T) {
	for _, start := range []time.Duration{time.Second, agent.ClockStartCeiling} {
		for name, script := range map[string]string{"agent": "sleep 1000", "ignores": "trap '' TERM; sleep 1000 & wait; sleep 1000"} {
			t.Run(strings.Join([]string{start.String(), name}, "-"), func(t *testing.T) {
				a := startLive(t, script, func(s *agent.Spec) {
					s.ClockStart, s.Limits.WallClock, s.Limits.StopGrace = start, 2*time.Second, time.Second
				})
				r := a.ends()
				if r.Status != agent.StatusTimeout || r.WallMS < 2000 || r.WallMS > 1000*int64(late) {
					t.Errorf("%s after %d ms", r.Status, r.WallMS)
				}
			})
		}
	}
}
