package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A worktree whose repository the agent does not see is named before the run, with the flag that
// shows it. The flag is not named for a repository of which nothing shows that it is the folder's.
func TestAWorktreeWithoutItsRepositoryIsNamed(t *testing.T) {
	b := newBench(t)
	dir := b.host.Dir
	for name, text := range map[string]string{
		"repo/.git/HEAD": "ref: refs/heads/main\n", "repo/.git/objects/x": "x", "repo/.git/refs/x": "x",
		"repo/.git/worktrees/wt/commondir": "../..\n",
		"repo/.git/worktrees/wt/gitdir":    filepath.Join(dir, "wt/.git") + "\n",
		"wt/.git":                          "gitdir: " + filepath.Join(dir, "repo/.git/worktrees/wt") + "\n",
		"evil/.git":                        "gitdir: " + filepath.Join(dir, "repo/.git/worktrees/wt") + "\n",
		"plain/x":                          "x",
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		b.file(name, text, 0o644)
	}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		t.Fatal(err)
	}
	repository := filepath.Join(real, "repo/.git")
	show := repository + ":" + filepath.Join(dir, "repo/.git") + ":ro"
	tests := []struct {
		args []string
		want []string // in stderr; nil: it is empty
		not  string
	}{
		{[]string{"--workspace", "wt"}, []string{"its repository " + repository + " is not shown", "-v " + show, "git clone"}, "another"},
		{[]string{"--workspace", "wt", "-v", show}, nil, ""},
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
