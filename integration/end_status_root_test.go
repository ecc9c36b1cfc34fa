//go:build root

package integration

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"clove.run/clove/agent"
)

// ending is one row of the table of exit statuses.
type ending struct {
	name    string
	flags   []string
	command []string
	status  agent.Status
	code    int
	signal  string
	limit   string // name of the limit that ended it
	step    string // of the failure
	errno   string
	stderr  string // one line must contain this
}

var endings = []ending{
	{name: "by itself", command: []string{"true"}, status: agent.StatusExited},
	{name: "by itself, failing", command: []string{"sh", "-c", "exit 42"}, status: agent.StatusExited, code: 42},
	{name: "its own 124 is not a timeout", command: []string{"sh", "-c", "exit 124"}, status: agent.StatusExited, code: 124},
	{name: "its own 137 is not a kill", command: []string{"sh", "-c", "exit 137"}, status: agent.StatusExited, code: 137},
	{name: "own signal", command: []string{"sh", "-c", "kill -ABRT $$"}, status: agent.StatusSignaled, code: 134, signal: "SIGABRT"},
	{name: "own KILL is not an OOM", command: []string{"sh", "-c", "kill -KILL $$"}, status: agent.StatusSignaled, code: 137, signal: "SIGKILL"},
	{name: "not found", command: []string{"no-such-command"}, status: agent.StatusStartFailed, code: agent.ExitNotFound,
		step: "look up", errno: "no such file", stderr: "not found in the sandbox's PATH"},
	{name: "path not found", command: []string{"/no/such/command"}, status: agent.StatusStartFailed, code: agent.ExitNotFound,
		errno: "no such file", stderr: "/no/such/command"},
	{name: "not executable", command: []string{"/etc/passwd"}, status: agent.StatusStartFailed, code: agent.ExitCannotExec,
		errno: "permission denied", stderr: "/etc/passwd"},
	{name: "a directory", command: []string{"/usr"}, status: agent.StatusStartFailed, code: agent.ExitCannotExec, stderr: "/usr"},
	{name: "no working directory", flags: []string{"--workdir=/no/such"}, command: []string{"true"}, status: agent.StatusStartFailed,
		code: agent.ExitStartFailed, step: "chdir", errno: "no such file", stderr: "/no/such"},
	{name: "cpu time", flags: []string{"--cpu-time=200ms"}, command: []string{"sh", "-c", "while :; do :; done"},
		status: agent.StatusCPUTime, code: agent.ExitTimeout, signal: "SIGTERM", limit: agent.ControlCPUTime, stderr: "raise --cpu-time"},
	{name: "cpu time of many", flags: []string{"--cpu-time=200ms"}, command: []string{"sh", "-c", "(while :; do :; done) & (while :; do :; done) & wait"},
		status: agent.StatusCPUTime, code: agent.ExitTimeout, signal: "SIGTERM", limit: agent.ControlCPUTime, stderr: "raise --cpu-time"},
	{name: "memory", flags: []string{"--memory=48M"}, command: []string{"perl", "-e", "my $x = 'a' x (256 << 20); print 'held'"},
		status: agent.StatusOOM, code: agent.ExitKilled, signal: "SIGKILL", limit: agent.ControlMemory, stderr: "raise --memory"},
	{name: "output", flags: []string{"--output-limit=100K"}, command: []string{"yes"},
		status: agent.StatusOutputLimit, code: agent.ExitKilled, limit: agent.ControlOutput, stderr: "raise --output-limit"},
	{name: "disk", flags: []string{"--disk=16M"}, command: []string{"sh", "-c", "head -c 64M /dev/zero >/workspace/x"},
		status: agent.StatusDiskFull, code: 1, limit: agent.ControlDisk, stderr: "raise --disk"},
}

func TestEveryEnding(t *testing.T) { everyEnding(t, newHost(t)) }

func everyEnding(t *testing.T, h *host) {
	for _, e := range endings {
		t.Run(e.name, func(t *testing.T) {
			r := h.agent(e.flags, e.command...)
			e.check(t, r)
		})
	}
}

func (e ending) check(t *testing.T, r result) {
	t.Helper()
	if r.record.Status != e.status || r.code != e.code {
		t.Errorf("got %s, exit %d; want %s, exit %d\n%s", r.record.Status, r.code, e.status, e.code, r.stderr)
	}
	if e.signal != "" || e.status == agent.StatusExited {
		if signal := said(r.record.Signal); signal != e.signal {
			t.Errorf("signal %q, want %q", signal, e.signal)
		}
	}
	if limit := r.record.Limit; (limit == nil) != (e.limit == "") {
		t.Errorf("limit: %+v, want %q", limit, e.limit)
	} else if limit != nil && (limit.Name != e.limit || limit.Value <= 0 || limit.Peak == nil || *limit.Peak < limit.Value/2) {
		t.Errorf("limit: %+v, want %s and a peak near its value", limit, e.limit)
	}
	failure := r.record.Error
	if (failure != nil) != (e.status == agent.StatusStartFailed) {
		t.Fatalf("failure: %+v", failure)
	}
	if failure != nil && (!strings.Contains(failure.Step, e.step) || !strings.Contains(failure.Errno, e.errno) || failure.Step == "" || failure.Hint == "") {
		t.Errorf("failure %+v, want step %q, errno %q and a hint", failure, e.step, e.errno)
	}
	switch {
	case e.stderr == "" && r.stderr != "":
		t.Errorf("clove has something to say: %q", r.stderr)
	case !strings.Contains(r.stderr, e.stderr):
		t.Errorf("stderr %q lacks %q", r.stderr, e.stderr)
	}
}

func said(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}

// TestLimitsThatAreNotReachedEndNothing is the control of every row with a limit: the same
// commands with higher limits.
func TestLimitsThatAreNotReachedEndNothing(t *testing.T) {
	h := newHost(t)
	for flag, command := range map[string][]string{
		"--cpu-time=1h":       {"sh", "-c", "for i in $(seq 20000); do :; done"},
		"--memory=600M":       {"perl", "-e", "my $x = 'a' x (256 << 20)"},
		"--output-limit=100M": {"sh", "-c", "yes | head -c 200K"},
		"--disk=256M":         {"sh", "-c", "head -c 64M /dev/zero >/workspace/x"},
		"--timeout=1h":        {"true"},
	} {
		if r := h.agent([]string{flag}, command...); r.code != 0 || r.record.Status != agent.StatusExited || r.record.Limit != nil {
			t.Errorf("%s: %s, exit %d, limit %+v\n%s", flag, r.record.Status, r.code, r.record.Limit, r.stderr)
		}
	}
}

// TestTheRecordIsTrue compares the record with what the test itself measured.
func TestTheRecordIsTrue(t *testing.T) {
	h := newHost(t)
	before := time.Now()
	r := h.agent([]string{"--name=truth", "--label=a=b"}, "sh", "-c",
		"echo 12345; echo 678 >&2; head -c 3M /dev/zero >/workspace/x; sleep 0.3; i=0; while [ $i -lt 50000 ]; do i=$((i+1)); done; exit 5")
	took := time.Since(before)
	record := r.record
	if record.Version != agent.RecordVersion || record.Name != "truth" || record.ExitCode != 5 || record.Status != agent.StatusExited || record.Signal != nil {
		t.Errorf("%+v", record)
	}
	if record.Command[0] != "sh" || len(record.Command) != 3 {
		t.Errorf("command: %q", record.Command)
	}
	if record.WallMS < 300 || record.WallMS > took.Milliseconds() {
		t.Errorf("it ran %d ms; sleep took 300, all took %v", record.WallMS, took)
	}
	if record.Started.Before(before.Add(-time.Second)) || record.Ended.Before(record.Started) || record.Ended.After(time.Now().Add(time.Second)) {
		t.Errorf("from %v to %v, asked at %v", record.Started, record.Ended, before)
	}
	u := record.Usage
	for name, figure := range map[string]struct {
		got      *int64
		min, max int64
	}{
		"output":      {u.OutputBytes, 10, 10},
		"disk":        {u.DiskBytes, 3 << 20, 8 << 20},
		"cpu":         {u.CPUMS, 1, 2 * took.Milliseconds()},
		"memory peak": {u.MemoryPeakBytes, 1 << 20, 1 << 30},
		"oom kills":   {record.Events.OOMKill, 0, 0},
	} {
		if figure.got == nil || *figure.got < figure.min || *figure.got > figure.max {
			t.Errorf("%s: %s, want %d to %d", name, number(figure.got), figure.min, figure.max)
		}
	}
	if record.Policy.Name != "standard" || len(record.Policy.SHA256) != 64 || record.Host.Kernel == "" || record.Host.Cgroup == "" {
		t.Errorf("policy %+v, host %+v", record.Policy, record.Host)
	}
}

func number(n *int64) string {
	text, _ := json.Marshal(n) // null or digits
	return string(text)
}

// TestTheRecordIsKept: inspect shows later what --result wrote; with --rm nothing is kept.
func TestTheRecordIsKept(t *testing.T) {
	h := newHost(t)
	file := filepath.Join(t.TempDir(), "record.json")
	h.clove("run", "--name=kept", "--result", file, "--", "sh", "-c", "exit 3")
	written := readRecord(t, file)
	var run agent.Run
	if r := h.clove("inspect", "kept"); json.Unmarshal([]byte(r.stdout), &run) != nil || run.Record == nil {
		t.Fatalf("inspect: %s%s", r.stdout, r.stderr)
	}
	a, _ := json.Marshal(written)
	b, _ := json.Marshal(run.Record)
	if string(a) != string(b) || run.State != agent.StateEnded || run.Lease != nil {
		t.Errorf("kept %s\nwritten %s\nstate %s, lease %v", b, a, run.State, run.Lease)
	}
	if r := h.clove("run", "--rm", "--name=forgotten", "--", "true"); r.code != 0 {
		t.Fatal(r.stderr)
	}
	if r := h.clove("inspect", "forgotten"); r.code != 1 || !strings.Contains(r.stderr, "forgotten") {
		t.Errorf("inspect of a run with --rm: exit %d, %q", r.code, r.stderr)
	}
	if left, _ := os.ReadDir(filepath.Join(h.state, "layers")); len(left) != 0 {
		t.Errorf("layers are left of runs that wrote nothing: %v", left)
	}
}
