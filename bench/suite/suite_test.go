package suite

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const small = `version: 1
name: small
release: "1"
tasks:
  - name: a
    instruction: do it
    grade: {command: ["true"]}
agents:
  - {name: one, command: ["true"]}
`

func TestASmallSuite(t *testing.T) {
	t.Parallel()
	s, err := Parse([]byte(small))
	if err != nil || len(s.Seeds) != 1 || s.Seeds[0] != 1 || s.Tasks[0].Name != "a" {
		t.Fatalf("%+v, %v", s, err)
	}
}

// Each mistake is one error that says where it is.
func TestMistakes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ from, to, want string }{
		{"version: 1\n", "", "it names no version"},
		{"version: 1", "version: 2", "it has version 2"},
		{"name: small", "name: a b", `"a b" is no name`},
		{"name: small", "nme: small", `line 2, column 1: there is no key "nme"`},
		{`release: "1"`, `release: ""`, "it has no release"},
		{"instruction: do it", "instruktion: do it", `line 6, column 5: tasks.0: there is no key "instruktion"`},
		{"instruction: do it", `instruction: ""`, "tasks.a: it has no instruction"},
		{"instruction: do it", "instruction: do it\n    environment: x", `there is no environment "x"`},
		{"instruction: do it", "instruction: do it\n    files: ../up", `"../up" leads out of the suite`},
		{"instruction: do it", "instruction: do it\n    files: /etc", `"/etc" leads out of the suite`},
		{"instruction: do it", "instruction: do it\n    limits: {memory: [1]}", "line 7, column 22: tasks.limits.memory: a list stands where text belongs"},
		{`grade: {command: ["true"]}`, "grade: {}", "nothing would be checked"},
		{`grade: {command: ["true"]}`, "grade: {score: descriptor, expect: [{file: a}]}", "nothing would write the score"},
		{`grade: {command: ["true"]}`, "grade: {score: fd, command: [a]}", `score: "fd" is none of them`},
		{`grade: {command: ["true"]}`, "grade: {command: [a], pass: 2}", "pass: 2 is no score"},
		{`grade: {command: ["true"]}`, "grade: {expect: [{file: ../a}]}", `"../a" is no file of an attempt`},
		{`grade: {command: ["true"]}`, "grade: {expect: [{file: a, matches: '('}]}", "matches: error parsing regexp"},
		{`grade: {command: ["true"]}`, "grade: {expect: [{file: a, text: b, absent: true}]}", "cannot be absent and have a content"},
		{`command: ["true"]}` + "\n", "command: []}\n", "agents.one: it has no command"},
		{`{name: one, command: ["true"]}` + "\n", "{name: one, command: [a], metrics: fd}\n", `agents.one: metrics: "fd" is neither`},
		{"agents:\n", "agents:\n  - {name: one, command: [a]}\n", `agents: there are two named "one"`},
		{"tasks:\n", "seeds: [1, 1]\ntasks:\n", "seeds: 1 stands there twice"},
		{"tasks:\n", "environments: [{name: e, setup: {commands: [[]]}}]\ntasks:\n", "environments.e.setup: a command is empty"},
		{"tasks:\n", "clock_start: 0\ntasks:\n", `clock_start: "0" is no start of the clocks`},
		{"tasks:\n", "clock_start: soon\ntasks:\n", `clock_start: "soon" is no start of the clocks`},
		{"tasks:\n", "clock_start: 87601h\ntasks:\n", `clock_start: "87601h" is no start of the clocks`},
		{"tasks:\n", "parallel: -1\ntasks:\n", "parallel: -1 is none"},
	} {
		text := small
		if i := strings.LastIndex(text, c.from); i >= 0 {
			text = text[:i] + c.to + text[i+len(c.from):]
		}
		if _, err := Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s instead of %s: %v", c.to, c.from, err)
		}
	}
}

// An agent's descriptor leads to a file of its workspace, and a kept root has none.
func TestADescriptorNeedsAWorkspace(t *testing.T) {
	t.Parallel()
	for root, want := range map[string]string{RootShared: "", RootKept: "agents.one: metrics: a kept root has no file for them"} {
		text := strings.Replace(small, "instruction: do it", "instruction: do it\n    environment: e", 1)
		text = strings.Replace(text, "{name: one, ", "{name: one, metrics: descriptor, ", 1) + "environments: [{name: e, root: " + root + "}]\n"
		if _, err := Parse([]byte(text)); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", root, err)
		}
	}
}

// The hash changes with the document and with each file that it names, and with nothing else.
func TestTheHashCoversFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	sum := func() string {
		t.Helper()
		s, err := Load(dir)
		if err != nil {
			t.Fatal(err)
		}
		return s.SHA256
	}
	write(FileName, strings.Replace(small, "instruction: do it", "instruction: do it\n    files: a", 1))
	write("a/x", "1")
	first := sum()
	write("b/x", "1")
	if sum() != first {
		t.Error("a folder that the suite does not name changes the hash")
	}
	write("a/x", "2")
	second := sum()
	write("a/y", "")
	third := sum()
	if first == second || second == third {
		t.Errorf("%s, %s, %s", first, second, third)
	}
	if err := os.RemoveAll(filepath.Join(dir, "a")); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(dir); err == nil || !strings.Contains(err.Error(), `tasks.a: cannot read "a"`) {
		t.Errorf("without its folder: %v", err)
	}
}

func TestSchemaKnowsEachKey(t *testing.T) {
	t.Parallel()
	var schema struct {
		Properties map[string]any `json:"properties"`
		Required   []string       `json:"required"`
	}
	if err := json.Unmarshal(Schema(), &schema); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"tasks", "agents", "seeds", "environments"} {
		if schema.Properties[key] == nil {
			t.Errorf("the schema lacks %s", key)
		}
	}
	if schema.Properties["Dir"] != nil || len(schema.Required) != 5 {
		t.Errorf("%v, %v", schema.Properties["Dir"], schema.Required)
	}
}
