package main

import (
	"fmt"
	"slices"
	"strings"

	"clove.run/clove/agent"
	"clove.run/clove/internal/gitdir"
)

// reportWorktree reports a workspace whose .git leads to a repository that the agent does not see,
// because it may be another user's, or has a form that cannot be shown.
func reportWorktree(s *screen, spec agent.Spec) {
	workspace := spec.Files.Workspace
	if workspace == "" || spec.Files.GitDir != "" { // one that is named is shown, or the run is refused
		return
	}
	link, found := gitdir.Find(workspace, spec.Files.GitDir)
	if !found {
		return
	}
	inside := link.Inside(agent.WorkspaceDir)
	if slices.ContainsFunc(spec.Files.Binds, func(b agent.Bind) bool { return inside == b.Target || strings.HasPrefix(inside, b.Target+"/") }) {
		return
	}
	why := link.Foreign
	if why == "" {
		_, err := link.Read(agent.WorkspaceDir)
		if err == nil {
			return
		}
		why, _, _ = strings.Cut(err.Error(), "\n")
	}
	s.say("clove", cyan, fmt.Sprintf("git does not work inside: .git leads to %s, which %s", link.Dir, why))
	s.say("hint", cyan, "if that repository is yours: --git-dir "+link.Dir+", or work in a clone: git clone "+workspace+" CLONE")
}
