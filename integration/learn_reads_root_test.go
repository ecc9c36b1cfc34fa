//go:build root

package integration

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"clove.run/clove/agent"
)

// reading runs a lesson under its policy with the list of what may be read, too: it passes, and
// files that the program did not read are refused.
func (l lesson) reading(t *testing.T, h *host, dir, locked string, first agent.Record) {
	t.Helper()
	policy := filepath.Join(filepath.Dir(locked), "reading.yaml")
	if r := h.clove("policy", "learn", "--merge", "--reads", "--out", policy, locked+".observed.json"); r.code != 0 {
		t.Fatalf("%d %s", r.code, r.stderr)
	}
	learned := readLocked(t, policy)
	learned.has(t, `- "/usr" # whole: the base system`)
	if r := h.agent(l.command(dir, "--policy", policy), "/bin/sh", "-c", l.run); r.code != 0 || !strings.Contains(r.stdout, l.ends) || len(newlyRefused(r.record, first)) > 0 {
		t.Errorf("it does not run with a list of reads: %d %q %s %v\n%s", r.code, r.stdout, r.stderr, r.record.Denials, learned.text)
	}
	if l.listsEtc {
		learned.has(t, `- "/etc"`) // as a whole, which the document says
		return
	}
	const other = "read x </etc/issue; echo got $x"
	if r := h.agent(l.command(dir, "--policy", locked), "/bin/sh", "-c", other); !strings.Contains(r.stdout, "got Debian") {
		t.Fatalf("control: %q %s", r.stdout, r.stderr)
	}
	if r := h.agent(l.command(dir, "--policy", policy), "/bin/sh", "-c", other); strings.Contains(r.stdout, "got Debian") || !isUnread(r.record, "/etc/issue") {
		t.Errorf("it read what the learned run did not: %q %v", r.stdout, r.record.Denials)
	}
}

// isUnread reports whether a list of reads refused a file.
func isUnread(record agent.Record, file string) bool {
	return slices.ContainsFunc(record.Denials, func(d agent.Denial) bool {
		return d.Kind == agent.DenialFile && d.Rule == agent.RuleRead && d.Target == file
	})
}

// TestLearnReads: a workspace that was neither listed nor written to is in the list file by file. One that
// was listed is in it as a whole, and the document says so.
func TestLearnReads(t *testing.T) {
	h := newHost(t)
	dir := t.TempDir()
	for name, text := range map[string]string{"a.txt": "1 and this", ".env": "1 secret"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	const opens, lists = "read x </workspace/a.txt; echo got $x", "ls -a /workspace >/dev/null; echo got 1"
	const other = "read x </workspace/.env; echo got $x"
	for _, row := range []struct {
		flags   []string
		run     string
		want    string
		refused bool
	}{
		{nil, opens, "files:\n", false},
		{[]string{"--learn-reads"}, opens, `- "/workspace/a.txt"`, true},
		{[]string{"--learn-reads"}, lists, `- "/workspace" # whole: the folder itself was opened`, false},
	} {
		locked := filepath.Join(t.TempDir(), "locked.yaml")
		with := func(flags ...string) []string { return append([]string{"--workspace", dir}, flags...) }
		if r := h.agent(with(append(row.flags, "--learn", locked)...), "/bin/sh", "-c", row.run); r.code != 0 {
			t.Fatalf("%d %s", r.code, r.stderr)
		}
		learned := readLocked(t, locked)
		learned.has(t, row.want)
		if r := h.agent(with("--policy", locked), "/bin/sh", "-c", row.run); r.code != 0 || !strings.Contains(r.stdout, "got 1") || len(r.record.Denials) > 0 {
			t.Errorf("%v: it does not run again: %q %s %v\n%s", row.flags, r.stdout, r.stderr, r.record.Denials, learned.text)
		}
		if r := h.agent(with("--policy", locked), "/bin/sh", "-c", other); strings.Contains(r.stdout, "got 1") == row.refused || isUnread(r.record, "/workspace/.env") != row.refused {
			t.Errorf("%v: %q %v\n%s", row.flags, r.stdout, r.record.Denials, learned.text)
		}
	}
}
