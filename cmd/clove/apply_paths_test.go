package main

import (
	"slices"
	"testing"

	"clove.run/clove/agent"
	"clove.run/clove/rootfs"
	"clove.run/clove/runtime"
)

func TestPathsOfApply(t *testing.T) {
	t.Parallel()
	if got := insidePaths([]string{"a/", "./b/../c", "/workspace/d", "/etc"}); !slices.Equal(got, []string{"/workspace/a", "/workspace/c", "/workspace/d", "/etc"}) {
		t.Errorf("got %q", got)
	}
	changes := []rootfs.Change{{Kind: rootfs.Added, Path: "/workspace/a"}, {Kind: rootfs.Added, Path: "/workspace/b"}}
	for at, want := range map[string]agent.Kind{"/workspace/a": "", "/workspace": "", "/workspace/none": agent.KindNotFound, "/etc": agent.KindInvalid,
		"/workspace/../etc": agent.KindInvalid, "/workspacex": agent.KindInvalid, "a": agent.KindInvalid} {
		chosen, err := runtime.ChosenOf(changes, []string{at})
		if agent.KindOf(err) != want && (want != "" || err != nil) {
			t.Errorf("%s: %v", at, err)
		}
		if (len(chosen) > 0) != (want == "") {
			t.Errorf("%s chooses %v", at, chosen)
		}
	}
}
