//go:build root

package integration

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"clove.run/clove/bench"
)

// shipped runs a suite of the tree.
func shipped(t *testing.T, name string, flags ...string) *benched {
	t.Helper()
	h := newHost(t)
	b := &benched{h, filepath.Join("..", "suites", name), filepath.Join(filepath.Dir(h.state), "results")}
	if r := b.bench(flags...); r.code != 0 {
		t.Fatalf("%d\n%s", r.code, r.stderr)
	}
	return b
}

// Each task is solved by the reference solution. Doing nothing solves none, and neither does
// attacking the grader.
func TestBenchSuiteCode(t *testing.T) {
	solved := map[string]int{}
	for name, r := range shipped(t, "code").outcomes() {
		if r.Outcome == bench.Passed {
			solved[r.Agent]++
		} else if r.Agent == "perfect" || r.Outcome != bench.Failed {
			t.Errorf("%s: %s, %s", name, r.Outcome, r.Cause)
		}
	}
	if solved["perfect"] != 20 || solved["lazy"] != 0 || solved["hostile"] != 0 || solved["flaky"] == 0 || solved["flaky"] == 20 {
		t.Errorf("%v", solved)
	}
}

// Contestants that leak, spin, fork, hang, flood, fill and try to leave change nothing for
// those that work before, beside and after them.
func TestBenchSuiteLimits(t *testing.T) {
	want := map[string]string{"leak": "oom", "spin": "timeout", "fork": "timeout", "hang": "timeout", "flood": "output-limit", "fill": "disk-full", "escape": "exit status 3"}
	for name, r := range shipped(t, "limits").outcomes() {
		switch cause, hostile := want[r.Agent]; {
		case !hostile && r.Outcome != bench.Passed:
			t.Errorf("%s was disturbed: %s, %s", name, r.Outcome, r.Cause)
		case hostile && (r.Outcome != bench.Failed || !strings.HasPrefix(r.Cause, cause+"; ")):
			t.Errorf("%s: %s, %s", name, r.Outcome, r.Cause)
		}
	}
}

// Kept attempts are graded again with the same results. A file that changes afterwards, and a
// result that does, are seen.
func TestBenchVerify(t *testing.T) {
	b := shipped(t, "smoke")
	if r := b.clove("bench", "verify", b.results, b.suite); r.code != 0 || r.stdout != "6 attempts, 6 graded again, 0 not as their results say\n" {
		t.Fatalf("%d, %s%s", r.code, r.stdout, r.stderr)
	}
	results := filepath.Join(b.results, bench.ResultsFile)
	text, err := os.ReadFile(results)
	if err != nil {
		t.Fatal(err)
	}
	forged := strings.Replace(string(text), `"cause":"grader: exit status 1","score":0`, `"cause":"","score":1`, 1)
	forged = strings.Replace(forged, `"outcome":"failed","cause":""`, `"outcome":"passed","cause":""`, 1)
	if forged == string(text) {
		t.Fatal("nothing was forged")
	}
	if err := os.WriteFile(results, []byte(forged), 0o600); err != nil {
		t.Fatal(err)
	}
	if r := b.clove("bench", "verify", b.results, b.suite); r.code != 1 || !strings.Contains(r.stderr, "results.jsonl has changed") || !strings.Contains(r.stderr, "graded again it is failed") {
		t.Errorf("a forged score: %d, %s", r.code, r.stderr)
	}
	if err := os.WriteFile(results, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(b.results, bench.AttemptsDir, "sum.perfect.1", "files.tar")); err != nil {
		t.Fatal(err)
	}
	if r := b.clove("bench", "verify", b.results); r.code != 1 || !strings.Contains(r.stderr, "sum.perfect.1: files.tar is gone") {
		t.Errorf("a file that is gone: %d, %s", r.code, r.stderr)
	}
}

// A program of the agent's that the grader executes as its own user reads the expected answer
// from the grader's files: that is the control. As another user it does not.
func TestBenchGradersCanHideTheirFiles(t *testing.T) {
	b := newSuite(t, map[string]string{
		"suite.yaml": `
tasks:
  - {name: same, instruction: x, grade: {command: [sh, /workspace/check.sh], files: grader, score: descriptor}}
  - {name: other, instruction: x, grade: {command: [sh, /workspace/check.sh, setpriv, --reuid=1000, --regid=1000, --clear-groups], files: grader, score: descriptor, user: root}}
agents:
  - {name: reader, command: [sh, -c, "echo 'grep -rhos answer-[0-9]* /workspace | head -n 1' > answer.sh"]}
  - {name: honest, command: [sh, -c, "echo 'echo answer-4711' > answer.sh"]}
`,
		"grader/check.sh": `got=$("$@" sh /attempt/answer.sh 3>&-); echo "got $got" >&2; if [ "$got" = answer-4711 ]; then echo 1; else echo 0; fi >&3` + "\n",
	})
	if r := b.bench(); r.code != 0 {
		t.Fatalf("%d\n%s", r.code, r.stderr)
	}
	got := b.outcomes()
	if r := got["same.reader.1"]; r.Outcome != bench.Passed {
		t.Errorf("the control: %s, %s: the attack does not work at all", r.Outcome, r.Cause)
	}
	if r := got["other.honest.1"]; r.Outcome != bench.Passed {
		t.Errorf("a right answer: %s, %s", r.Outcome, r.Cause)
	}
	if r := got["other.reader.1"]; r.Outcome != bench.Failed || r.Cause != "grader: score 0.00" {
		t.Errorf("as another user: %s, %s", r.Outcome, r.Cause)
	}
}

// The set-up of an environment is made once and seen read-only; the next bench with the same
// folder of environments uses it again.
func TestBenchEnvironments(t *testing.T) {
	b := newSuite(t, map[string]string{
		"suite.yaml": `
environments:
  - name: e
    setup: {commands: [[sh, -c, "cp /workspace/tool /env/; cat /proc/sys/kernel/random/uuid > /env/made"]], files: setup, network: {mode: none}}
tasks:
  - {name: t, instruction: x, environment: e, grade: {command: [sh, -c, "test $(sh /env/tool) = $(cat /attempt/out)"], expect: [{file: err, matches: Read-only}]}}
agents:
  - {name: a, command: [sh, -c, "sh /env/tool > out; touch /env/x 2> err; cat /env/made"]}
`,
		"setup/tool": "echo tool\n",
	})
	cache := filepath.Join(filepath.Dir(b.state), "environments")
	var made []string
	for _, results := range []string{"one", "two"} {
		b.results = filepath.Join(filepath.Dir(b.state), results)
		if r := b.bench("--environments", cache); r.code != 0 || b.outcomes()["t.a.1"].Outcome != bench.Passed {
			t.Fatalf("%d, %+v\n%s", r.code, b.outcomes(), r.stderr)
		}
		out, err := os.ReadFile(filepath.Join(b.results, bench.AttemptsDir, "t.a.1", "output", "stdout"))
		if err != nil || len(out) < 30 {
			t.Fatalf("%q, %v", out, err)
		}
		made = append(made, string(out))
	}
	if made[0] != made[1] {
		t.Errorf("the environment was made twice: %q", made)
	}
}

// The script for CI leaves every report, and a second start of the pipeline makes nothing again.
func TestBenchInCI(t *testing.T) {
	b := newSuite(t, map[string]string{"suite.yaml": "tasks:\n  - {name: t, instruction: x, grade: {expect: [{file: a}]}}\nagents:\n  - {name: a, command: [touch, a]}\n"})
	summary := filepath.Join(t.TempDir(), "summary.md")
	for i := range 2 {
		ctx, cancel := context.WithTimeout(context.Background(), patience())
		defer cancel()
		cmd := exec.CommandContext(ctx, filepath.Join("..", "examples", "bench", "ci.sh"), b.suite, b.results)
		cmd.Env = append(b.command(ctx).Env, "CLOVE="+filepath.Join(b.bin, "clove"), "GITHUB_STEP_SUMMARY="+summary)
		out, err := cmd.CombinedOutput()
		if made := strings.Count(string(out), "bench: 1/1 t.a.1: passed"); err != nil || made != 1-i {
			t.Fatalf("%v, %d attempts\n%s", err, made, out)
		}
	}
	for name, want := range map[string]string{"report.xml": `<testcase classname="s.a" name="t seed 1"`, "report.html": "<!doctype html>", "report.csv": "t.a.1,t,a,1,passed", "report.markdown": "# s 1"} {
		text, err := os.ReadFile(filepath.Join(b.results, name))
		if err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s: %v\n%s", name, err, text)
		}
	}
	if text, err := os.ReadFile(summary); err != nil || !strings.HasPrefix(string(text), "# s 1") {
		t.Errorf("%v\n%s", err, text)
	}
}
