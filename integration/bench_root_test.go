//go:build root

package integration

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/bench"
	"clove.run/clove/internal/testhost"
)

// benched is a suite in a folder of the test, and the results of running it.
type benched struct {
	*host
	suite, results string
}

// newSuite writes the files of a suite; suite.yaml begins with what every suite has.
func newSuite(t *testing.T, files map[string]string) *benched {
	t.Helper()
	h := newHost(t)
	dir := filepath.Join(filepath.Dir(h.state), "suite")
	files["suite.yaml"] = "version: 1\nname: s\nrelease: '1'\nlimits: {memory: 64M, timeout: 20s, disk: 32M}\n" + files["suite.yaml"]
	for name, text := range files {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return &benched{h, dir, filepath.Join(filepath.Dir(h.state), "results")}
}

// bench runs the suite. It takes as long as all of its attempts, one after the other on a busy
// machine.
func (b *benched) bench(flags ...string) result {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*patience())
	defer cancel()
	cmd := b.command(ctx, slices.Concat([]string{"bench", "run", "--results", b.results}, flags, []string{b.suite})...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	var exit *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &exit) || ctx.Err() != nil {
		b.t.Fatalf("%v, %v\n%s", err, ctx.Err(), &errs)
	}
	return result{stdout: out.String(), stderr: errs.String(), code: cmd.ProcessState.ExitCode()}
}

// outcomes are the results by attempt.
func (b *benched) outcomes() map[string]bench.Result {
	b.t.Helper()
	all, cut, err := bench.ReadResults(b.results)
	if err != nil || cut != 0 {
		b.t.Fatalf("%d lines are cut, %v", cut, err)
	}
	named := map[string]bench.Result{}
	for _, r := range all {
		named[r.Attempt] = r
	}
	return named
}

// An agent brings a grader of its own to where graders have theirs, looks for the real one, and
// leaves a file where the grader's tree would be. The control is a grader that executes the
// agent's copy.
func TestBenchGradesWhereNoAgentWas(t *testing.T) {
	b := newSuite(t, map[string]string{
		"suite.yaml": `
tasks:
  - {name: real, instruction: x, grade: {command: [sh, /workspace/check.sh], files: grader}}
  - {name: control, instruction: x, grade: {command: [sh, /attempt/check.sh], files: grader}}
  - {name: readonly, instruction: x, grade: {command: [sh, -c, "touch /attempt/x || touch /output/x || test -e /attempt/check.sh -a ! -e /tmp/was-here"]}}
agents:
  - {name: forger, command: [sh, /agent/forge.sh], files: agents}
`,
		"grader/check.sh": "# no agent knows 4711-the-answer\ntest \"$(cat /attempt/answer)\" = 4711-the-answer\n",
		"agents/forge.sh": `
mkdir -p /attempt /output; touch /tmp/was-here
echo 'exit 0' > /workspace/check.sh
echo 'exit 0' > /attempt/check.sh
grep -rs 4711-the-answer /workspace /task /agent /tmp /home /attempt /mnt /srv /var /run > /workspace/answer
exit 0
`,
	})
	if r := b.bench(); r.code != 0 {
		t.Fatalf("%d\n%s", r.code, r.stderr)
	}
	got := b.outcomes()
	if r := got["control.forger.1"]; r.Outcome != bench.Passed {
		t.Errorf("the control: %s, %s: the attack does not work at all", r.Outcome, r.Cause)
	}
	if r := got["real.forger.1"]; r.Outcome != bench.Failed || r.Cause != "grader: exit status 1" {
		t.Errorf("the grader: %s, %s", r.Outcome, r.Cause)
	}
	if r := got["readonly.forger.1"]; r.Outcome != bench.Passed {
		t.Errorf("the grader's view: %s, %s", r.Outcome, r.Cause)
	}
	log, err := os.ReadFile(filepath.Join(b.results, bench.AttemptsDir, "readonly.forger.1", "grader.log"))
	if err != nil || strings.Count(string(log), "Read-only file system") != 2 {
		t.Errorf("%v, %s", err, log)
	}
}

// An agent leaves a process and files. Within its own sandbox they are there, which is the
// control; the next attempt finds neither.
func TestBenchAttemptsDoNotMeet(t *testing.T) {
	b := newSuite(t, map[string]string{
		"suite.yaml": `
seeds: [1, 2, 3]
parallel: 1
tasks:
  - {name: t, instruction: x, grade: {expect: [{file: ":stdout", text: "before: none, after: process file"}]}}
agents:
  - {name: leaver, command: [sh, /agent/leave.sh], files: agents}
`,
		"agents/leave.sh": `
look() {
  found=
  grep -lsa 'leftover-471[1]' /proc/[0-9]*/cmdline > /dev/null && found="$found process"
  test -e /tmp/leftover -o -e /dev/shm/leftover -o -e /home/agent/leftover -o -e /workspace/leftover && found="$found file"
  echo "${found:- none}"
}
before=$(look)
touch /tmp/leftover /dev/shm/leftover /home/agent/leftover /workspace/leftover
perl -e '$0 = "leftover-4711"; fork or do { setpgrp; $SIG{TERM} = "IGNORE"; open F, ">/tmp/ready"; sleep 1000 }' < /dev/null > /dev/null 2>&1 &
until test -e /tmp/ready; do :; done
printf 'before:%s, after:%s\n' "$before" "$(look)"
`,
	})
	if r := b.bench(); r.code != 0 {
		t.Fatalf("%d\n%s", r.code, r.stderr)
	}
	for name, r := range b.outcomes() {
		if r.Outcome != bench.Passed {
			out, _ := os.ReadFile(filepath.Join(b.results, bench.AttemptsDir, name, "output", "stdout"))
			t.Errorf("%s: %s, %s: %s", name, r.Outcome, r.Cause, out)
		}
	}
}

// A failure of the agent itself is a result and is not tried again. A failure of the infrastructure
// is tried again, counts nowhere, and is made anew by --resume.
func TestBenchTellsAgentsFromInfrastructure(t *testing.T) {
	b := newSuite(t, map[string]string{
		"suite.yaml": `
tasks:
  - {name: t, instruction: x, limits: {timeout: ` + testhost.Patience(3*time.Second).String() + `, output: 64K}, grade: {expect: [{file: done}]}}
agents:
  - {name: memory, command: [perl, -e, "my $x = 'a' x (256 << 20); print 'held'"]}
  - {name: time, command: [sleep, "1000"]}
  - {name: output, command: ["yes"]}
  - {name: disk, command: [sh, -c, "head -c 64M /dev/zero > x"]}
  - {name: hole, command: [sh, -c, "truncate -s 1G x"]}
  - {name: links, command: [sh, -c, "ln -s /etc/passwd done; mkfifo pipe"]}
  - {name: broken, command: [/agent/broken.sh], files: agents}
`,
		"agents/broken.sh": "#!/no-such-interpreter\n",
	})
	r := b.bench("--retries", "1")
	if r.code != 1 || !strings.Contains(r.stderr, "some attempts have no result") {
		t.Errorf("%d\n%s", r.code, r.stderr)
	}
	got := b.outcomes()
	for name, want := range map[string]string{
		"memory": "oom; done: it does not exist", "time": "timeout; done: it does not exist", "output": "output-limit; done: it does not exist",
		"disk": "disk-full; done: it does not exist", "hole": "its files cannot be kept: they have more bytes than its disk", "links": "done: it does not exist",
	} {
		if r := got["t."+name+".1"]; r.Outcome != bench.Failed || r.Cause != want || r.Tries != 1 {
			t.Errorf("%s: %s, %q, %d tries", name, r.Outcome, r.Cause, r.Tries)
		}
	}
	if r := got["t.links.1"]; r.Files.Refused != 2 {
		t.Errorf("%d files were refused", r.Files.Refused)
	}
	// Another try of this would end the same.
	if r := got["t.broken.1"]; r.Outcome != bench.Infrastructure || r.Tries != 1 || !strings.HasPrefix(r.Cause, "start failed: execve") {
		t.Errorf("%s, %q, %d tries", r.Outcome, r.Cause, r.Tries)
	}
	if r := b.bench("--resume"); strings.Count(r.stderr, "bench: 1/1 ") != 1 || r.code != 1 {
		t.Errorf("resumed: %d\n%s", r.code, r.stderr)
	}
}

// A bench that is interrupted, or killed, has made some attempts. The next one makes the others,
// and none twice.
func TestBenchGoesOnAfterAnInterruption(t *testing.T) {
	for name, signal := range map[string]unix.Signal{"ctrl-c": unix.SIGINT, "killed": unix.SIGKILL} {
		t.Run(name, func(t *testing.T) {
			b := newSuite(t, map[string]string{"suite.yaml": `
seeds: [1, 2, 3, 4, 5, 6]
parallel: 1
tasks:
  - {name: t, instruction: x, grade: {expect: [{file: done}]}}
agents:
  - {name: a, command: [sh, -c, "sleep 0.3; touch done"]}
`})
			b.interrupt(signal)
			before := b.outcomes()
			if len(before) == 0 || len(before) == 6 {
				t.Fatalf("%d attempts were made before", len(before))
			}
			if r := b.bench("--resume"); r.code != 0 {
				t.Fatalf("%d\n%s", r.code, r.stderr)
			}
			after := b.outcomes()
			for name, r := range after {
				if first, made := before[name]; r.Outcome != bench.Passed || made && !first.Times.Began.Equal(r.Times.Began) {
					t.Errorf("%s: %s, %s", name, r.Outcome, r.Cause)
				}
			}
			lines, err := os.ReadFile(filepath.Join(b.results, bench.ResultsFile))
			if err != nil || strings.Count(string(lines), "\n") != 6 || len(after) != 6 {
				t.Errorf("%v, %d results:\n%s", err, len(after), lines)
			}
		})
	}
}

// interrupt signals a bench after its second result.
func (b *benched) interrupt(signal unix.Signal) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience())
	defer cancel()
	cmd := b.command(ctx, "bench", "run", "--results", b.results, b.suite)
	out, err := cmd.StderrPipe()
	if err == nil {
		err = b.begin(cmd)
	}
	if err != nil {
		b.t.Fatal(err)
	}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if strings.Contains(lines.Text(), "bench: 2/") {
			if err := cmd.Process.Signal(signal); err != nil {
				b.t.Error(err)
			}
		}
	}
	if err := cmd.Wait(); err == nil {
		b.t.Error("the interrupted bench ended well")
	}
}

// Every condition that this kernel can hold was found inside a sandbox.
func TestBenchConditionsHold(t *testing.T) {
	b := newSuite(t, map[string]string{"suite.yaml": `
seeds: [77]
clock_start: 5000h
tasks:
  - {name: t, instruction: x, grade: {expect: [{file: ":stdout", text: "UTC bench 77 0022 180000"}]}}
agents:
  - {name: a, command: [sh, -c, 'echo $(date +%Z) $(cat /proc/sys/kernel/hostname) $PYTHONHASHSEED $(umask) $(cut -c-6 /proc/uptime)']}
`})
	if r := b.bench(); r.code != 0 {
		t.Fatalf("%d\n%s", r.code, r.stderr)
	}
	if r := b.outcomes()["t.a.77"]; r.Outcome != bench.Passed || len(r.CPUs) != 1 {
		t.Errorf("%s, %s, processors %v", r.Outcome, r.Cause, r.CPUs)
	}
	var m bench.Manifest
	text, err := os.ReadFile(filepath.Join(b.results, bench.ManifestFile))
	if err == nil {
		err = json.Unmarshal(text, &m)
	}
	if err != nil || len(m.Enforced) < 14 || len(m.Noise) != 2 || m.Ended.IsZero() {
		t.Fatalf("%v\n%s", err, text)
	}
	cannot := []string{"order of directories", "start of the wall clock"}
	for _, k := range m.Enforced {
		if k.Enforced == slices.Contains(cannot, k.Name) {
			t.Errorf("%+v", k)
		}
	}
	// The control: without parity the host name is the run's, and the task is failed.
	b.results += "-without"
	if r := b.bench("--no-parity"); r.code != 0 || b.outcomes()["t.a.77"].Outcome != bench.Failed {
		t.Errorf("without parity: %d, %+v\n%s", r.code, b.outcomes()["t.a.77"], r.stderr)
	}
}

// A mistake is one error, and nothing is made. A machine that makes figures vary is refused
// only where that was asked for.
func TestBenchRefusals(t *testing.T) {
	suite := "tasks:\n  - {name: t, instruction: x, limits: {%}, grade: {expect: [{file: a}]}}\nagents:\n  - {name: a, command: [\"true\"]}\n"
	b := newSuite(t, map[string]string{"suite.yaml": strings.Replace(suite, "%", "", 1)})
	for _, c := range []struct {
		limits string
		flags  []string
		want   string
	}{
		{"memory: much", nil, `"much" is not a size`},
		{"memory: 1K", nil, "--memory"},
		{"memory: 100000G", nil, "t.a.1 may use more memory than this machine has left"},
		{"cpus: 4000", nil, "t.a.1 needs more processors than this machine has"},
		{"cpus: none", nil, `"none" is no number of processors`},
		{"timeout: soon", nil, "--timeout"},
		{"memry: 1G", nil, `line 5, column 40: tasks.0.limits: there is no key "memry"`},
		{"", []string{"--filter", "x"}, "no attempt matches x"},
		{"", []string{"--retries", "-1"}, `"-1" is none`},
		{"", []string{"--require-quiet"}, "this machine makes figures vary: "},
	} {
		text := "version: 1\nname: s\nrelease: '1'\n" + strings.Replace(suite, "%", c.limits, 1)
		if err := os.WriteFile(filepath.Join(b.suite, "suite.yaml"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		r := b.bench(c.flags...)
		if r.code != 1 || !strings.Contains(r.stderr, c.want) || strings.Count(r.stderr, "hint: ") != 1 {
			t.Errorf("%s %v: %d, %s", c.limits, c.flags, r.code, r.stderr)
		}
		if _, err := os.Stat(b.results); err == nil {
			t.Fatalf("%s %v: a folder was made", c.limits, c.flags)
		}
	}
}
