package suite

import (
	"strings"
	"testing"
)

// TestARootForGraders: where a suite says nothing, a grader has the task's own root.
func TestARootForGraders(t *testing.T) {
	t.Parallel()
	for root, own := range map[string]bool{"": true, "root: own, ": true, "root: kept, ": false} {
		s, err := Parse([]byte(strings.Replace(kept, "score: reward", root+"score: reward", 1)))
		if err != nil {
			t.Fatal(err)
		}
		if got := s.Tasks[0].Grade.OwnRoot(s.Environments[0]); got != own {
			t.Errorf("%q: %t", root, got)
		}
	}
	shared := strings.NewReplacer("root: kept, disk: 1G,", "", "score: reward", "score: reward, root: own").Replace(kept)
	if _, err := Parse([]byte(shared)); err == nil || !strings.Contains(err.Error(), "tasks.a.grade: root: its environment keeps no root") {
		t.Error(err)
	}
	if (Grade{}).OwnRoot(Environment{}) {
		t.Error("nothing is kept, and a grader has another root")
	}
}

const kept = `version: 1
name: kept
release: "1"
environments:
  - {name: e, root: kept, disk: 1G, workdir: /app, user: root, variables: {A: b}, setup: {commands: [["true"]]}}
tasks:
  - name: a
    instruction: do it
    environment: e
    grade: {command: ["true"], files: t, at: /tests, score: reward}
    solution: {files: s}
agents:
  - {name: one, command: ["true"], solution: true}
`

// What has no place beside a root that is kept is refused.
func TestMistakesWithAKeptRoot(t *testing.T) {
	t.Parallel()
	if s, err := Parse([]byte(kept)); err != nil || !s.Kept() {
		t.Fatal(err)
	}
	for _, c := range []struct{ from, to, want string }{
		{"root: kept", "root: mine", `root: "mine" is neither`},
		{"root: kept", "root: shared", "disk is the size of a kept root"},
		{"workdir: /app", "workdir: app", `workdir: "app" is none`},
		{"variables: {A: b}", "variables: {'': b}", "environments.e.variables: a name is empty"},
		{`commands: [["true"]]`, `commands: [["true"]], limits: {disk: 1M}`, "environments.e.setup.limits: all phases share one disk"},
		{"environment: e", "environment: e\n    files: f", "tasks.a: files would be at /workspace"},
		{"environment: e", "environment: e\n    limits: {disk: 1M}", "tasks.a: all phases share one disk"},
		{", at: /tests", "", "tasks.a.grade: files would be at /workspace"},
		{"at: /tests", "at: /workspace", `at: "/workspace" is no place for its files`},
		{"at: /tests", "at: tests", `at: "tests" is no place`},
		{"at: /tests", "at: /attempt/root", `at: "/attempt/root" is no place`},
		{"at: /tests", "at: /output", `at: "/output" is no place`},
		{"at: /tests", "at: /tests, root: shared", `tasks.a.grade: root: "shared" is neither`},
		{"files: t, ", "", `at: "/tests" is no place`},
		{"score: reward", "score: reward, expect: [{file: x}]", `expect: "x": clove itself reads no file of a kept root`},
		{`command: ["true"], files: t, at: /tests, score: reward`, "score: reward, expect: [{file: ':stdout'}]", "nothing would write the score"},
		{"solution: {files: s}", "solution: {files: ../s}", "leads out of the suite"},
		{"\n    solution: {files: s}", "", "agents.one: the task a has no solution"},
		{"solution: true", "metrics: descriptor", "agents.one: metrics: a kept root has no file for them"},
	} {
		if !strings.Contains(kept, c.from) {
			t.Fatal(c.from)
		}
		if _, err := Parse([]byte(strings.Replace(kept, c.from, c.to, 1))); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s instead of %s: %v", c.to, c.from, err)
		}
	}
}
