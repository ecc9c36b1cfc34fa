package main

import (
	"fmt"
	"slices"
	"strings"

	"clove.run/clove/agent"
	"clove.run/clove/internal/gitdir"
)

// reportWorktree says that git will not find the repository of a workspace whose .git is a file.
// It names the flag that shows the repository only if that belongs to the folder: a flag that is
// copied from a hint must not show another user's.
func reportWorktree(s *screen, spec agent.Spec) {
	workspace := spec.Files.Workspace
	if workspace == "" {
		return
	}
	link, found := gitdir.Find(workspace)
	if !found {
		return
	}
	inside := link.Inside(agent.WorkspaceDir)
	if slices.ContainsFunc(spec.Files.Binds, func(b agent.Bind) bool { return inside == b.Target || strings.HasPrefix(inside, b.Target+"/") }) {
		return
	}
	if link.Common == "" {
		s.say("clove", cyan, fmt.Sprintf("git does not work inside: .git leads to %s, which %s", link.Dir, link.Foreign))
		s.say("hint", cyan, "work in a clone, if that repository is yours: git clone "+workspace+" CLONE")
		return
	}
	s.say("clove", cyan, "git does not work inside: this is a worktree, and its repository "+link.Common+" is not shown")
	hint := "to commit inside, work in a clone: git clone " + workspace + " CLONE"
	if !strings.ContainsAny(link.Common+inside, ":, ") {
		hint = fmt.Sprintf("-v %s:%s:ro lets it read, its config too; ", link.Common, inside) + hint
	}
	s.say("hint", cyan, hint)
}
