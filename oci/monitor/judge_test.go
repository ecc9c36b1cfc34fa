package monitor

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/cgroups"
)

// killed and exited return statuses in the format of wait(2).
func killed(signal unix.Signal) unix.WaitStatus { return unix.WaitStatus(signal) }
func exited(code int) unix.WaitStatus           { return unix.WaitStatus(code << 8) }

func TestAnEndIsAttributed(t *testing.T) {
	limits := agent.Limits{WallClock: 2 * time.Second, MemoryBytes: 1 << 20}
	for name, row := range map[string]struct {
		seen   seen
		status agent.Status
		code   int
		signal string
		limit  string
		fails  bool
	}{
		"zero":                        {seen{}, agent.StatusExited, 0, "", "", false},
		"status":                      {seen{status: exited(7)}, agent.StatusExited, 7, "", "", false},
		"signal":                      {seen{status: killed(unix.SIGTERM)}, agent.StatusSignaled, 143, "SIGTERM", "", false},
		"core":                        {seen{status: killed(unix.SIGSEGV) | 0x80}, agent.StatusSignaled, 139, "SIGSEGV", "", false},
		"real-time signal":            {seen{status: killed(40)}, agent.StatusSignaled, 168, "SIG40", "", false},
		"deadline":                    {seen{status: killed(unix.SIGKILL), expired: true}, agent.StatusTimeout, 124, "SIGKILL", agent.ControlWallClock, false},
		"deadline, and memory":        {seen{status: killed(unix.SIGKILL), expired: true, oomKills: 1}, agent.StatusTimeout, 124, "SIGKILL", agent.ControlWallClock, false},
		"deadline, end unseen":        {seen{expired: true, unknown: errUnheld}, agent.StatusTimeout, 124, "", agent.ControlWallClock, false},
		"memory":                      {seen{status: killed(unix.SIGKILL), oomKills: 1}, agent.StatusOOM, 137, "SIGKILL", agent.ControlMemory, false},
		"memory, passed on":           {seen{status: exited(137), oomKills: 3}, agent.StatusOOM, 137, "", agent.ControlMemory, false},
		"memory, survived":            {seen{oomKills: 1}, agent.StatusExited, 0, "", "", false},
		"memory, and another failure": {seen{status: exited(1), oomKills: 1}, agent.StatusExited, 1, "", "", false},
		"killed without a reason":     {seen{status: killed(unix.SIGKILL)}, agent.StatusSignaled, 137, "SIGKILL", "", false},
		"end lost":                    {seen{unknown: errEndLost, oomKills: 1}, agent.StatusKilled, 137, "", "", true},
		"end unseen":                  {seen{unknown: errUnheld}, agent.StatusKilled, 137, "", "", true},
	} {
		v := judge(limits, row.seen)
		signal, limit := "", ""
		if v.signal != nil {
			signal = *v.signal
		}
		if v.limit != nil {
			limit = v.limit.Name
		}
		if v.status != row.status || v.exitCode != row.code || signal != row.signal || limit != row.limit || (v.failure != nil) != row.fails {
			t.Errorf("%s: %+v, %q, %q", name, v, signal, limit)
		}
	}
}

func TestOnlyClovesOwnRulesAreInTheRecord(t *testing.T) {
	if held := enforced(agent.Limits{}, cgroups.ModeV2); len(held) != 0 {
		t.Error(held)
	}
	all := agent.Limits{WallClock: 1, MemoryBytes: 1, MemorySwapBytes: 1, Pids: 1, CPUs: 1}
	for mode, word := range map[cgroups.Mode]string{cgroups.ModeV2: "cgroup2", cgroups.ModeHybrid: "cgroup1", cgroups.ModeV1: "cgroup1"} {
		held := enforced(all, mode)
		if len(held) != 5 || held[agent.ControlWallClock] != "timerfd" || held[agent.ControlMemory] != word || held[agent.ControlCPU] != word {
			t.Errorf("%s: %v", mode, held)
		}
	}
}
