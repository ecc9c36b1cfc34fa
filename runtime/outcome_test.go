package runtime

import (
	"errors"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/cgroups"
	"clove.run/clove/policies"
)

// v2 counts what its own limit ended; on v1 the peak decides.
func TestBelowTheLimit(t *testing.T) {
	t.Parallel()
	number := func(n int64) *int64 { return &n }
	for _, c := range []struct {
		stats cgroups.Stats
		want  bool
	}{
		{cgroups.Stats{}, false},
		{cgroups.Stats{MemoryLimitOOMs: number(1), MemoryPeakBytes: number(10)}, false},
		{cgroups.Stats{MemoryLimitOOMs: number(0), MemoryPeakBytes: number(100)}, true},
		{cgroups.Stats{MemoryPeakBytes: number(99)}, false},
		{cgroups.Stats{MemoryPeakBytes: number(20)}, true},
	} {
		if got := belowLimit(c.stats, 100); got != c.want {
			t.Errorf("%+v: %v", c.stats, got)
		}
	}
}

func TestJudge(t *testing.T) {
	t.Parallel()
	cpu := 3 * time.Second
	rows := []struct {
		name   string
		o      outcome
		status agent.Status
		code   int
		signal string
		limit  string
	}{
		{"exits 0", outcome{exitKnown: true}, "exited", 0, "", ""},
		{"exits 7", outcome{exitKnown: true, code: 7}, "exited", 7, "", ""},
		{"dies of its own signal", outcome{exitKnown: true, signal: int(unix.SIGSEGV)}, "signaled", 139, "SIGSEGV", ""},
		{"deadline", outcome{exitKnown: true, cause: causeDeadline, signal: int(unix.SIGTERM), wall: time.Minute}, "timeout", 124, "SIGTERM", "wall-clock"},
		{"deadline, but it exited 0 on TERM", outcome{exitKnown: true, cause: causeDeadline}, "timeout", 124, "", "wall-clock"},
		{"idle, and it ended of TERM", outcome{exitKnown: true, cause: causeIdle, signal: int(unix.SIGTERM)}, "idle", 0, "SIGTERM", ""},
		{"idle, and it failed on TERM", outcome{exitKnown: true, cause: causeIdle, code: 3}, "idle", 0, "", ""},
		{"idle, and it was killed after its grace", outcome{cause: causeIdle}, "idle", 0, "SIGKILL", ""},
		{"cpu time", outcome{exitKnown: true, cause: causeCPUTime, signal: 9, cpu: &cpu}, "cpu-time", 124, "SIGKILL", "cpu-time"},
		{"output", outcome{cause: causeOutput, output: 11}, "output-limit", 137, "SIGKILL", "output"},
		{"sockets", outcome{cause: causeSockets, sockets: 11}, "oom", 137, "SIGKILL", "sockets"},
		{"oom", outcome{exitKnown: true, signal: 9, oomKills: 1}, "oom", 137, "SIGKILL", "memory"},
		{"the host had no more", outcome{oomKills: 3, below: true}, "oom", 137, "SIGKILL", "host-memory"},
		{"oom took clove-init too", outcome{oomKills: 3}, "oom", 137, "SIGKILL", "memory"},
		{"oom during the launch", outcome{startError: errors.New("x"), oomKills: 1}, "oom", 137, "SIGKILL", "memory"},
		{"killed without OOM is not oom", outcome{exitKnown: true, signal: 9}, "signaled", 137, "SIGKILL", ""},
		{"deadline beats a late oom", outcome{cause: causeDeadline, oomKills: 1}, "timeout", 124, "SIGKILL", "wall-clock"},
		{"user", outcome{exitKnown: true, cause: causeUser, signal: 9}, "killed", 137, "SIGKILL", ""},
		{"user, and it went by itself", outcome{exitKnown: true, cause: causeUser, code: 7}, "exited", 7, "", ""},
		{"user, and TERM ended it", outcome{exitKnown: true, cause: causeUser, signal: 15}, "signaled", 143, "SIGTERM", ""},
		{"user, who did not wait", outcome{cause: causeUser}, "killed", 137, "SIGKILL", ""},
		{"supervisor lost, and it went by itself", outcome{exitKnown: true, cause: causeLifeline, code: 7}, "killed", 137, "SIGKILL", ""},
		{"supervisor lost", outcome{cause: causeLifeline}, "killed", 137, "SIGKILL", ""},
		{"no cause reported", outcome{}, "killed", 137, "SIGKILL", ""},
		{"start failed", outcome{startError: agent.Failed("netns", unix.ENOSPC)}, "start-failed", 125, "", ""},
		{"start behind its deadline", outcome{startError: overdue(agent.Run{Deadline: time.Unix(1, 0)}, time.Now())}, "timeout", 124, "", ""},
		{"not found", outcome{execFailed: &execFailure{"exec", "no such command", unix.ENOENT, 127}}, "start-failed", 127, "", ""},
		{"failed with a full disk", outcome{exitKnown: true, code: 1, diskFull: &agent.LimitHit{Name: "disk"}}, "disk-full", 1, "", "disk"},
		{"content with a full disk", outcome{exitKnown: true, diskFull: &agent.LimitHit{Name: "disk"}}, "exited", 0, "", ""},
		{"failed with no file left", outcome{exitKnown: true, code: 1, diskFull: &agent.LimitHit{Name: "disk-files"}}, "disk-full", 1, "", "disk-files"},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			v := judge(policies.Standard().Limits, row.o)
			signal, limit := "", ""
			if v.signal != nil {
				signal = *v.signal
			}
			if v.limit != nil {
				limit = v.limit.Name
			}
			if v.status != row.status || v.exitCode != row.code || signal != row.signal || limit != row.limit {
				t.Errorf("got %s %d %q %q, want %s %d %q %q",
					v.status, v.exitCode, signal, limit, row.status, row.code, row.signal, row.limit)
			}
		})
	}
}

func TestAStartFailureNamesStepErrnoAndHint(t *testing.T) {
	t.Parallel()
	err := &agent.Error{Step: "rootfs: mount", Message: "cannot mount overlay", Hint: "load it", Err: unix.ENODEV}
	v := judge(agent.Limits{}, outcome{startError: err})
	want := agent.Failure{Step: "rootfs: mount", Message: "cannot mount overlay: no such device",
		Errno: "no such device", Hint: "load it"}
	if v.failure == nil || *v.failure != want {
		t.Errorf("got %+v, want %+v", v.failure, want)
	}
}

func TestHintsFitTheStep(t *testing.T) {
	t.Parallel()
	for f, want := range map[execFailure]string{
		{step: "look up", exitCode: agent.ExitNotFound}:                 "inside the sandbox",
		{step: "execve", exitCode: agent.ExitCannotExec}:                "inside the sandbox",
		{step: "chdir", exitCode: agent.ExitStartFailed}:                "--workdir",
		{step: "rlimit nofile", exitCode: agent.ExitStartFailed}:        "--ulimit",
		{step: "controlling terminal", exitCode: agent.ExitStartFailed}: "clove doctor",
	} {
		if hint := execVerdict(f).failure.Hint; !strings.Contains(hint, want) {
			t.Errorf("%s: %q lacks %q", f.step, hint, want)
		}
	}
}

func TestSignalNames(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]string{9: "SIGKILL", 15: "SIGTERM", 40: "SIG40"} {
		if got := *signalName(n); got != want {
			t.Errorf("%d is %s, want %s", n, got, want)
		}
	}
}
