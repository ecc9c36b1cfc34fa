//go:build root

package integration

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// loads maps a library that no program is linked with, and names it.
const loads = `/usr/bin/python3 -c 'import ctypes, sys; ctypes.CDLL(sys.argv[1]); print("loaded")' `

// TestLearnWhatIsLoaded: a library that a program opens by itself is in the list, and another
// one is refused then.
func TestLearnWhatIsLoaded(t *testing.T) {
	h := newHost(t)
	locked := filepath.Join(t.TempDir(), "locked.yaml")
	first := h.agent([]string{"--learn", locked}, "/bin/sh", "-c", loads+"libBrokenLocale.so.1")
	if first.code != 0 {
		t.Fatalf("%d %s", first.code, first.stderr)
	}
	learned := readLocked(t, locked)
	learned.has(t, "libBrokenLocale.so.1\" # loaded, and no program of the list is linked with it")
	if r := h.agent([]string{"--policy", locked}, "/bin/sh", "-c", loads+"libBrokenLocale.so.1"); r.code != 0 || len(newlyRefused(r.record, first.record)) > 0 {
		t.Errorf("it does not run again: %d %s %v\n%s", r.code, r.stderr, r.record.Denials, learned.text)
	}
	if r := h.agent(nil, "/bin/sh", "-c", loads+"libanl.so.1"); r.code != 0 {
		t.Fatalf("control: %d %s", r.code, r.stderr)
	}
	if r := h.agent([]string{"--policy", locked}, "/bin/sh", "-c", loads+"libanl.so.1"); r.code == 0 || !strings.Contains(r.stderr, "failed to map segment") {
		t.Errorf("another library was loaded: %d %q %s", r.code, r.stdout, r.stderr)
	}
}

// TestLearnProgramsOfTheWorkspace: one that the run did not write to becomes read-only, and its
// programs are in the list, whatever their names. Where it was written to there is no list.
func TestLearnProgramsOfTheWorkspace(t *testing.T) {
	h := newHost(t)
	dir := t.TempDir()
	text, err := os.ReadFile("/usr/bin/env")
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "a[1]*"), text, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	locked := filepath.Join(t.TempDir(), "locked.yaml")
	const run = "'/workspace/a[1]*' /bin/sh -c 'echo done'"
	for _, row := range []struct{ run, want string }{
		{run, `- "/workspace/a\\[1]\\*"`},
		{run + " >out", "# no list of programs: /workspace/a[1]* was executed, and the agent can write to /workspace"},
	} {
		if r := h.agent([]string{"--workspace", dir, "--learn", locked}, "/bin/sh", "-c", row.run); r.code != 0 {
			t.Fatalf("%d %s", r.code, r.stderr)
		}
		learned := readLocked(t, locked)
		learned.has(t, row.want)
		if r := h.agent([]string{"--workspace", dir, "--policy", locked}, "/bin/sh", "-c", row.run); r.code != 0 || len(r.record.Denials) > 0 {
			t.Errorf("it does not run again: %d %s %v\n%s", r.code, r.stderr, r.record.Denials, learned.text)
		}
	}
}

// TestLearnMergesPrograms: a folded policy lets the programs of both runs pass, and no other one;
// an audit names what of a list a run did not use.
func TestLearnMergesPrograms(t *testing.T) {
	h := newHost(t)
	dir := t.TempDir()
	runs := map[string]string{"a": "/usr/bin/id", "b": "/usr/bin/uname"}
	for name, run := range runs {
		if r := h.agent([]string{"--learn", filepath.Join(dir, name+".yaml")}, "/bin/sh", "-c", run+"; true"); r.code != 0 {
			t.Fatalf("%d %s", r.code, r.stderr)
		}
	}
	if r := h.agent([]string{"--policy", filepath.Join(dir, "a.yaml")}, "/bin/sh", "-c", runs["b"]); r.code == 0 || !isExec(r.record) {
		t.Errorf("control: %d %v", r.code, r.record.Denials)
	}
	both := filepath.Join(dir, "both.yaml")
	if r := h.clove("policy", "learn", "--merge", "--out", both, filepath.Join(dir, "a.yaml.observed.json"), filepath.Join(dir, "b.yaml.observed.json")); r.code != 0 {
		t.Fatalf("%d %s", r.code, r.stderr)
	}
	for _, run := range runs {
		if r := h.agent([]string{"--policy", both}, "/bin/sh", "-c", run+"; true"); r.code != 0 || len(r.record.Denials) > 0 {
			t.Errorf("%s: %d %s %v", run, r.code, r.stderr, r.record.Denials)
		}
	}
	again := filepath.Join(dir, "again.yaml")
	if r := h.agent([]string{"--policy", both, "--learn", again}, "/bin/sh", "-c", runs["a"]+"; true"); r.code != 0 {
		t.Fatalf("%d %s", r.code, r.stderr)
	}
	if r := h.clove("policy", "audit", again+".observed.json"); r.code != 0 || !strings.Contains(r.stdout, "/usr/bin/uname") || strings.Contains(r.stdout, "/usr/bin/id") {
		t.Errorf("%d %s", r.code, r.stdout)
	}
}

// TestLearnARestart: a start that cloved makes again is observed, too, and leaves the document.
func TestLearnARestart(t *testing.T) {
	d := newCloved(t)
	locked := filepath.Join(t.TempDir(), "locked.yaml")
	d.ok("run", "--name=taught", "--learn", locked, "--", "/bin/sh", "-c", "test -e /tmp/again && /usr/bin/id; /usr/bin/touch /tmp/again; exit 0")
	before, err := os.ReadFile(locked)
	if err != nil || strings.Contains(string(before), `- "/usr/bin/id"`) {
		t.Fatalf("%v\n%s", err, before)
	}
	uses := func(want string) {
		t.Helper()
		if text := d.ok("policy", "audit", "taught"); !strings.Contains(text, want+" programs and libraries") {
			t.Errorf("it does not say %s programs:\n%s", want, text)
		}
	}
	uses("2")
	d.ok("restart", "taught")
	d.ok("wait", "taught")
	uses("3")
	if after, err := os.ReadFile(locked); err != nil || string(after) != string(before) {
		t.Errorf("the document changed: %v\n%s", err, after)
	}
	d.ok("rm", "taught")
}
