package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Each mistake is one error, and makes no folder. Tasks that are refused keep the others from
// being imported, unless the caller says otherwise.
func TestBenchImport(t *testing.T) {
	b := newBench(t)
	for name, text := range map[string]string{"good/task.toml": "", "good/instruction.md": "do it", "good/environment/Dockerfile": "FROM x\n", "good/tests/test.sh": "true",
		"bad/task.toml": "", "bad/instruction.md": "do it", "bad/environment/Dockerfile": "FROM x\nSHELL [\"a\"]\n", "bad/tests/test.sh": "true"} {
		path := filepath.Join(b.host.Dir, "tasks", name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	made := filepath.Join(b.host.Dir, "tasks-suite")
	for _, row := range []struct {
		words  string
		status int
		stderr string
	}{
		{"import other tasks", exitFailed, `"other" is no format of tasks`},
		{"import harbor", exitFailed, "it does not take the words"},
		{"import harbor nowhere", exitFailed, "name a task's folder"},
		{"import harbor --rootfs x tasks", exitFailed, "write IMAGE=DIR"},
		{"import harbor --network all tasks", exitFailed, "write agent=task, agent=none, grader=task or grader=none"},
		{"import harbor tasks", exitFailed, `nothing stands for the image "x"`},
		{"import harbor --base x tasks", exitFailed, "1 of 2 tasks cannot be translated"},
		{"import harbor --base x --partly tasks", 0, `bad: environment/Dockerfile line 2: the instruction "SHELL" is not translated`},
		{"import harbor --base x --partly tasks", exitFailed, "name a folder that does not exist with --to"},
	} {
		status, stdout, stderr := b.clove(append([]string{benchName}, strings.Fields(row.words)...)...)
		if status != row.status || !strings.Contains(stderr, row.stderr) {
			t.Errorf("%s: %d, %q, %q", row.words, status, stdout, stderr)
		}
		if _, err := os.Stat(made); err == nil && row.status != 0 && !strings.Contains(row.stderr, "--to") {
			t.Errorf("%s: a folder is there", row.words)
		}
	}
	if status, stdout, stderr := b.clove(benchName, "plan", made); status != 0 || stdout != "good.nothing.1\n" {
		t.Errorf("%d, %q, %q", status, stdout, stderr)
	}
}
