//go:build root

package integration

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"clove.run/clove/bench"
)

// Programs that are not where an attempt would look for them are one error, and no attempt
// begins. The control has each of them at its place.
func TestBenchFindsMissingPrograms(t *testing.T) {
	text := `
environments:
  - {name: tools, setup: {network: {mode: none}, commands: [[sh, -c, "cp /bin/true /env/%there; mkdir -p /env/bin; cp /bin/true /env/bin/%in-path"]]}}
tasks:
  - {name: shell, instruction: x, environment: tools, files: start, grade: {command: [sh, /workspace/check.sh], files: grader}}
  - {name: own, instruction: x, environment: tools, files: start, grade: {command: [./%check.sh], score: descriptor, files: grader}}
  - {name: root, instruction: x, environment: tools, files: start, grade: {command: ["%true"], user: root, score: descriptor}}
agents:
  - {name: builtin, command: ["true"]}
  - {name: env, command: [/env/there]}
  - {name: path, command: [in-path], environment: {PATH: "/env/bin:/bin"}}
  - {name: file, command: [/agent/%run.sh], files: agents}
  - {name: start, command: [./%start.sh]}
`
	script := "#!/bin/sh\n[ ! -e /attempt ] || { echo 1 >&3; } 2> /dev/null; exit 0\n"
	b := newSuite(t, map[string]string{"suite.yaml": strings.ReplaceAll(text, "%", "no-"), "start/start.sh": script, "agents/run.sh": script,
		"grader/check.sh": script, "grader/no-grader": script})
	r := b.bench()
	for _, want := range []string{`agents.env: "/env/there" in the environment tools`, `agents.path: "in-path"`, `agents.file: "/agent/no-run.sh"`, `agents.start: "./no-start.sh"`,
		`tasks.own.grade: "./no-check.sh"`, `tasks.root.grade: "no-true"`} {
		if strings.Count(r.stderr, want) != 1 {
			t.Errorf("it does not say %s", want)
		}
	}
	if r.code != 1 || strings.Count(r.stderr, "hint: ") != 1 || strings.Contains(r.stderr, "builtin") || strings.Contains(r.stderr, "shell") || len(b.outcomes()) != 0 {
		t.Errorf("%d, %d results\n%s", r.code, len(b.outcomes()), r.stderr)
	}
	if err := os.WriteFile(filepath.Join(b.suite, "suite.yaml"), []byte("version: 1\nname: s\nrelease: '1'\n"+strings.ReplaceAll(text, "%", "")), 0o644); err != nil {
		t.Fatal(err)
	}
	if r := b.bench(); r.code != 0 || len(b.outcomes()) != 15 {
		t.Errorf("the control: %d, %d results\n%s", r.code, len(b.outcomes()), r.stderr)
	}
}

// An agent writes its figures to descriptor 3. The control has no such descriptor, and the
// file takes lines beside it. Bytes that are no line are counted.
func TestBenchMetricsByDescriptor(t *testing.T) {
	b := newSuite(t, map[string]string{
		"suite.yaml": `
tasks:
  - {name: t, instruction: x, grade: {expect: [{file: ":stdout", text: out}, {file: ":stderr", text: err}]}}
agents:
  - {name: with, metrics: descriptor, command: [sh, /agent/run.sh], files: agents}
  - {name: without, command: [sh, /agent/run.sh], files: agents}
`,
		"agents/run.sh": `
echo out; echo err >&2
echo '{"steps":1,"tool_calls":4}' >> "$BENCH_METRICS"
{ test "$BENCH_METRICS_FD" = 3 && echo '{"steps":2}' >&3 && head -c 1000 /dev/zero >&3 && echo >&3 && echo '{"steps":9e99}' >&3; } 2> /dev/null
exit 0
`,
	})
	if r := b.bench(); r.code != 0 {
		t.Fatalf("%d\n%s", r.code, r.stderr)
	}
	got := b.outcomes()
	for name, want := range map[string]int64{"t.with.1": 3, "t.without.1": 1} {
		r := got[name]
		if m := r.Metrics; r.Outcome != bench.Passed || m.Steps == nil || *m.Steps != want || *m.ToolCalls != 4 || (m.Unreadable != 0) != (want == 3) || r.Files.Changed != 1 {
			t.Errorf("%s: %s, %s, %+v", name, r.Outcome, r.Cause, m)
		}
	}
}
