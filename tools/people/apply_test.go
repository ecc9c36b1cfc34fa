package people

import (
	"context"
	"slices"
	"strings"
	"testing"

	"clove.run/clove/agent"
)

var someChanges = []agent.Change{
	{Kind: "changed", Path: "/workspace/a", Type: "file"},
	{Kind: "added", Path: "/workspace/.git/hooks/x", Type: "file", ExecutedBy: "git"},
	{Kind: "added", Path: "/tmp/elsewhere", Type: "file"},
}

// Nothing is written without a digest of what was shown, and nothing that takes a person's consent.
func TestNothingIsWrittenThatWasNotShown(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.workspace = "/home/a/project"
	r.cloved.changes = someChanges
	if got := r.use("apply_changes", ""); got.Failed || !strings.Contains(got.Text, "no tool has used the sandbox") {
		t.Errorf("%+v", got)
	}
	r.use("run_command", `{"command":"true"}`)
	r.refused("apply_changes", `{"dry_run":false}`, "nothing is written that was not shown")
	if len(r.cloved.applied) != 0 {
		t.Fatal("it was applied")
	}
	got := r.use("apply_changes", `{"paths":["a"]}`)
	if got.Failed || !strings.Contains(got.Text, "digest sha256:d, and the same paths") || !strings.Contains(got.Text, "will be refused") || strings.Contains(got.Text, "elsewhere") {
		t.Errorf("%+v", got)
	}
	got = r.use("apply_changes", `{"paths":["a"],"dry_run":false,"digest":"sha256:d"}`)
	if len(r.cloved.applied) != 1 {
		t.Fatalf("%+v", got)
	}
	p := r.cloved.applied[0]
	if p.Digest != "sha256:d" || !slices.Equal(p.Paths, []string{"/workspace/a"}) || p.AllowExecutableConfig || p.AllowInstructions || p.AllowExecutable != nil || p.To != "" {
		t.Errorf("%+v", p)
	}
	if !got.Failed || !strings.Contains(got.Error, "1 changes were refused; clove apply mcp-") {
		t.Errorf("%+v", got)
	}
}

// Without a workspace there is nothing to write to.
func TestApplyNeedsAWorkspace(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.use("run_command", `{"command":"true"}`)
	r.refused("apply_changes", "", "--workspace")
}

// At the end a sandbox is removed, unless its workspace has changes that are only there.
func TestCloseKeepsWhatWasNotApplied(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		workspace string
		changes   []agent.Change
		kept      bool
	}{{"", someChanges, false}, {"/home/a/project", nil, false}, {"/home/a/project", someChanges, true}} {
		r := newRig(t)
		r.workspace, r.cloved.changes = row.workspace, row.changes
		r.use("run_command", `{"command":"true"}`)
		h := r.only().held
		must(t, r.Close(context.Background()))
		run := string(r.cloved.started[0].ID)
		if row.kept != slices.Equal(r.cloved.killed, []string{run}) || row.kept == slices.Equal(r.cloved.removed, []string{run}) {
			t.Errorf("%+v: killed %q, removed %q", row, r.cloved.killed, r.cloved.removed)
		}
		if said := strings.Contains(strings.Join(r.reported, "\n"), "clove apply mcp-"); said != row.kept {
			t.Errorf("%+v: %q", row, r.reported)
		}
		<-h.done
		r.refused("run_command", `{"command":"true"}`, "is ending")
	}
}
