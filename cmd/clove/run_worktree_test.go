package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A workspace whose repository the agent does not see is named before the run, with the reason. A
// worktree with a repository of its own is not: git works inside.
func TestAWorktreeWithoutItsRepositoryIsNamed(t *testing.T) {
	b := newBench(t)
	dir := b.host.Dir
	for name, text := range map[string]string{
		"repo/.git/HEAD": "ref: refs/heads/main\n", "repo/.git/objects/x": "x", "repo/.git/refs/x": "x",
		"repo/.git/worktrees/wt/commondir": "../..\n",
		"repo/.git/worktrees/wt/gitdir":    filepath.Join(dir, "wt/.git") + "\n",
		"wt/.git":                          "gitdir: " + filepath.Join(dir, "repo/.git/worktrees/wt") + "\n",
		"evil/.git":                        "gitdir: " + filepath.Join(dir, "repo/.git/worktrees/wt") + "\n",
		"new/.git/HEAD":                    "ref: refs/heads/main\n", "new/.git/objects/x": "x", "new/.git/refs/x": "x",
		"new/.git/config":                    "[extensions]\n\trefStorage = reftable\n",
		"new/.git/worktrees/table/commondir": "../..\n",
		"new/.git/worktrees/table/HEAD":      "ref: refs/heads/table\n",
		"new/.git/worktrees/table/gitdir":    filepath.Join(dir, "table/.git") + "\n",
		"table/.git":                         "gitdir: " + filepath.Join(dir, "new/.git/worktrees/table") + "\n",
		"repo/.git/worktrees/wt/HEAD":        "ref: refs/heads/wt\n",
		"plain/x":                            "x",
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		b.file(name, text, 0o644)
	}
	tests := []struct {
		args []string
		want []string // in stderr; nil: it is empty
		not  string
	}{
		{[]string{"--workspace", "wt"}, nil, ""},
		{[]string{"--workspace", "table"}, []string{"git does not work inside", `has its refs in the form "reftable"`, "git clone"}, ""},
		{[]string{"--workspace", "table", "-v", dir + ":" + dir + ":ro"}, nil, ""},
		{[]string{"--workspace", "evil"}, []string{"which is another folder's", "git clone"}, "-v "},
		{[]string{"--workspace", "plain"}, nil, ""},
		{[]string{"--workspace", "repo"}, nil, ""},
		{nil, nil, ""},
	}
	for _, tt := range tests {
		status, _, stderr := b.clove(append(append([]string{"run"}, tt.args...), "--", "true")...)
		if status != 0 || tt.want == nil && stderr != "" || tt.not != "" && strings.Contains(stderr, tt.not) {
			t.Errorf("%q: %d, %s", tt.args, status, stderr)
		}
		for _, want := range tt.want {
			if !strings.Contains(stderr, want) {
				t.Errorf("%q: %s\nwant %q", tt.args, stderr, want)
			}
		}
	}
}
