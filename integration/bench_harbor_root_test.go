//go:build root

package integration

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"clove.run/clove/bench"
)

// imported makes a suite of a task in Harbor's format and runs it.
func imported(t *testing.T, tasks string) *benched {
	t.Helper()
	h := newHost(t)
	dir := filepath.Dir(h.state)
	b := &benched{h, filepath.Join(dir, "suite"), filepath.Join(dir, "results")}
	if r := h.clove("bench", "import", "harbor", "--base", "debian:12", "--to", b.suite, tasks); r.code != 0 {
		t.Fatalf("%d\n%s", r.code, r.stderr)
	}
	if r := b.bench(); r.code != 0 {
		t.Fatalf("%d\n%s", r.code, r.stderr)
	}
	return b
}

// The task's own solution, which changes files anywhere in the root, has the reward 1, and an
// agent that does nothing has 0, although the set-up left a reward where the tests leave theirs.
func TestBenchImportsHarbor(t *testing.T) {
	b := imported(t, filepath.Join("..", "bench", "harbor", "testdata", "tasks"))
	got := b.outcomes()
	if r := got["add-line.oracle.1"]; r.Outcome != bench.Passed || r.Score != 1 {
		t.Errorf("the solution: %s, %s", r.Outcome, r.Cause)
	}
	if r := got["add-line.nothing.1"]; r.Outcome != bench.Failed || r.Cause != "grader: reward 0" {
		t.Errorf("nothing: %s, %s", r.Outcome, r.Cause)
	}
	// Kept attempts have the same grades, and a byte that changes in a layer is seen.
	if r := b.clove("bench", "verify", b.results, b.suite); r.code != 0 || !strings.HasPrefix(r.stdout, "2 attempts, 2 graded again, 0 not") {
		t.Errorf("%d, %s%s", r.code, r.stdout, r.stderr)
	}
	layer := filepath.Join(b.results, bench.AttemptsDir, "add-line.oracle.1", "layer.img")
	file, err := os.OpenFile(layer, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := file.WriteAt([]byte("x"), 4096*3+7); err != nil {
		t.Fatal(err)
	}
	if r := b.clove("bench", "verify", b.results, b.suite); r.code != 1 || !strings.Contains(r.stderr, "layer.img has changed") {
		t.Errorf("%d, %s%s", r.code, r.stdout, r.stderr)
	}
}

// An agent that makes grading impossible by its own root has that as its result, with either root
// of the grader's, and is tried once: by removing the shell or the loader, filling the layer, or taking the places
// of the grader's mounts. A grader with the task's own root judges what such an agent left, follows
// none of its links, and cannot be changed by it. The controls are an agent that does the task
// and one that does nothing.
func TestBenchBlamesTheAgentsRoot(t *testing.T) {
	b := newSuite(t, map[string]string{
		"suite.yaml": `
environments:
  - name: e
    root: kept
    disk: 32M
    user: root
    setup: {commands: [[sh, -c, "mkdir /srv && echo todo > /srv/list"]], network: {mode: none}}
tasks:
  - {name: own, instruction: x, environment: e, grade: {command: [sh, /tests/own.sh], files: tests, at: /tests}}
  - {name: kept, instruction: x, environment: e, grade: {command: [sh, /tests/kept.sh], files: tests, at: /tests, score: reward, root: kept}}
agents:
  - {name: does, command: [sh, -c, "echo done > /srv/list"]}
  - {name: nothing, command: ["true"]}
  - {name: shell, command: [sh, -c, "echo done > /srv/list; rm -f /usr/bin/sh /usr/bin/dash /usr/bin/bash"]}
  - {name: loader, command: [sh, -c, "echo done > /srv/list; rm -f /usr/lib64/ld-* /usr/lib/*/ld-* /usr/lib/ld-*"]}
  - {name: fills, command: [sh, -c, "echo done > /srv/list; cat /dev/zero > /srv/zeros; i=0; while echo > /srv/$i; do i=$((i+1)); done; true"]}
  - {name: places, command: [sh, -c, "echo done > /srv/list; rm -rf /logs /tests /output /attempt; echo > /logs; echo > /tests; ln -s / /output; ln -s / /attempt"]}
  - {name: links, command: [sh, -c, "rm /srv/list; ln -s /tests/answer /srv/list"]}
`,
		"tests/own.sh":  `test "$(cat /attempt/root/srv/list)" = "$(cat /tests/answer)" && test "$(cat /srv/list)" = todo && ! touch /attempt/root/srv/x`,
		"tests/kept.sh": `if test "$(cat /srv/list)" = done; then echo 1; else echo 0; fi > /logs/verifier/reward.txt`,
		"tests/answer":  "done\n",
	})
	if r := b.bench(); r.code != 0 {
		t.Fatalf("%d\n%s", r.code, r.stderr)
	}
	const impossible = "grader: what the agent left keeps it from starting: start failed: "
	got := b.outcomes()
	for agent, want := range map[string]struct {
		own  bench.Outcome
		kept string // how the cause begins; empty: it has passed
	}{
		"does": {bench.Passed, ""}, "nothing": {bench.Failed, "grader: reward 0"}, "shell": {bench.Passed, impossible + "look up"}, "loader": {bench.Passed, impossible + "execve"},
		"fills": {bench.Passed, impossible + "rootfs"}, "places": {bench.Passed, impossible + "rootfs"}, "links": {bench.Failed, ""},
	} {
		own, kept := got["own."+agent+".1"], got["kept."+agent+".1"]
		if own.Outcome != want.own || own.Tries != 1 {
			t.Errorf("%s, with a grader of the task's own root: %s after %d tries, %s", agent, own.Outcome, own.Tries, own.Cause)
		}
		if passed := want.kept == ""; (kept.Outcome == bench.Passed) != passed || kept.Outcome == bench.Infrastructure || kept.Tries != 1 || !strings.HasPrefix(kept.Cause, want.kept) {
			t.Errorf("%s, with a grader on its root: %s after %d tries, %s", agent, kept.Outcome, kept.Tries, kept.Cause)
		}
	}
	if r := b.clove("bench", "verify", b.results, b.suite); r.code != 0 || !strings.HasPrefix(r.stdout, "14 attempts, 14 graded again, 0 not") {
		t.Errorf("%d, %s%s", r.code, r.stdout, r.stderr)
	}
}

// Each attempt begins with what the set-up left and nothing else: no other attempt's changes,
// and no process of the agent's is in the grader's sandbox. An agent's score counts for
// no other agent. The control is the set-up's own file, which all of them find.
func TestBenchKeepsRootsApart(t *testing.T) {
	b := newSuite(t, map[string]string{
		"suite.yaml": `
environments:
  - name: own
    root: kept
    disk: 32M
    user: root
    setup: {commands: [[sh, -c, "echo control > /usr/local/set-up"], [sh, -c, "cat /usr/local/set-up && mkdir -p /logs/verifier && echo 1 > /logs/verifier/reward.txt"]], network: {mode: none}}
tasks:
  - name: t
    instruction: x
    environment: own
    grade: {command: [sh, /tests/test.sh], files: tests, at: /tests, score: reward, root: kept}
agents:
  - {name: first, command: [sh, -c, "test ! -e /usr/local/mark && echo first > /usr/local/mark && (sleep 600 & ) ; mkdir -p /tests && echo 'exit 0' > /tests/test.sh; echo 1 > /logs/verifier/reward.txt"]}
  - {name: second, command: [sh, -c, "test ! -e /usr/local/mark && echo second > /usr/local/mark"]}
`,
		"tests/test.sh": `
cat /usr/local/set-up /usr/local/mark
test ! -e /logs/verifier/reward.txt || exit 1
test "$(cat /usr/local/set-up)" = control || exit 1
for p in /proc/[0-9]*; do case "$(tr '\0' ' ' < $p/cmdline)" in "sleep 600 ") exit 1;; esac; done
echo '{"reward": 0.5}' > /logs/verifier/reward.json
exit 3
`,
	})
	if r := b.bench(); r.code != 0 {
		t.Fatalf("%d\n%s", r.code, r.stderr)
	}
	for name, r := range b.outcomes() {
		if r.Outcome != bench.Failed || r.Score != 0.5 || r.Cause != "grader: reward 0.5" {
			t.Errorf("%s: %s, %s", name, r.Outcome, r.Cause)
		}
		log, err := os.ReadFile(filepath.Join(b.results, bench.AttemptsDir, name, "grader.log"))
		if want := "control\n" + r.Agent + "\n"; err != nil || string(log) != want {
			t.Errorf("%s: %v, %q, want %q", name, err, log, want)
		}
	}
}
