package people

import (
	"regexp"
	"strings"
	"testing"

	"clove.run/clove/api"
)

// Over HTTP a call without a handle has a sandbox of its own, whose handle it returns; nothing is shared without
// it, and one that is unused ends.
func TestHandles(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.Handles = true
	r.cloved.exec = writing("42\n", api.ExecResult{})
	const code = `"language":"python","code":"print(42)"`
	handleOf := regexp.MustCompile(`\n\[sandbox: ([A-Z2-7]{26})\]\n$`)
	first := handleOf.FindStringSubmatch(r.use("run_code", "{"+code+"}").Text)
	second := handleOf.FindStringSubmatch(r.use("run_code", "{"+code+"}").Text)
	if first == nil || second == nil || first[1] == second[1] || len(r.cloved.started) != 2 {
		t.Fatalf("%q, %q, %d starts", first, second, len(r.cloved.started))
	}
	if got := r.use("run_code", `{"sandbox":"`+first[1]+`",`+code+`}`); got.Failed || got.Text != "42\n" || len(r.cloved.started) != 2 {
		t.Errorf("%+v", got)
	}
	r.refused("read_file", `{"path":"x"}`, "no sandbox is named")
	r.refused("apply_changes", `{}`, "no sandbox is named")
	r.refused("read_file", `{"path":"x","sandbox":"`+strings.Repeat("A", 26)+`"}`, "there is no sandbox")
	b := r.sandboxes[first[1]]
	b.calls = 1
	r.endUnused(first[1], b)
	if len(r.cloved.removed) != 0 {
		t.Error("one that is used was ended")
	}
	b.calls = 0
	r.endUnused(first[1], b)
	if len(r.cloved.removed) != 1 || r.cloved.removed[0] != string(r.cloved.started[0].ID) {
		t.Errorf("%q", r.cloved.removed)
	}
	r.refused("run_code", `{"sandbox":"`+first[1]+`",`+code+`}`, "there is no sandbox")
	for range maxSandboxes - 1 {
		r.use("run_code", "{"+code+"}")
	}
	r.refused("run_code", "{"+code+"}", "there are 16 sandboxes")
	must(t, r.Close(t.Context()))
	if len(r.cloved.removed) != 1+maxSandboxes {
		t.Errorf("%d removed", len(r.cloved.removed))
	}
	for _, one := range r.list() {
		if has := strings.Contains(string(one.Arguments), `"sandbox":{`); has == strings.Contains(one.Name, "agent") {
			t.Errorf("%s: %s", one.Name, one.Arguments)
		}
	}
}

// By pipes there is one sandbox, and no handle.
func TestOneSandboxHasNoHandle(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.refused("run_code", `{"sandbox":"x","language":"python","code":"1"}`, "has no handle")
	for _, one := range r.list() {
		if strings.Contains(string(one.Arguments), `"sandbox"`) {
			t.Errorf("%s", one.Arguments)
		}
	}
}
