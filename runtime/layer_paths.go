package runtime

import (
	"fmt"
	"path"
	"strings"

	"clove.run/clove/agent"
	"clove.run/clove/rootfs"
)

// ChosenOf are the changes of a workspace that paths inside choose; without paths, all. A path
// that is not below the workspace, or that nothing changed, is an error.
func ChosenOf(changes []rootfs.Change, paths []string) ([]rootfs.Change, error) {
	for _, at := range paths {
		if at != agent.WorkspaceDir && !strings.HasPrefix(at, agent.WorkspaceDir+"/") {
			return nil, &agent.Error{Kind: agent.KindInvalid, Step: "apply", Message: "only files of the workspace are applied",
				Hint: "name paths below " + agent.WorkspaceDir + ", as clove diff lists them"}
		}
	}
	return chosenOf(changes, paths)
}

// chosenOf is ChosenOf for all of a layer.
func chosenOf(changes []rootfs.Change, paths []string) ([]rootfs.Change, error) {
	if len(paths) == 0 {
		return changes, nil
	}
	for _, at := range paths {
		if !path.IsAbs(at) || path.Clean(at) != at {
			return nil, &agent.Error{Kind: agent.KindInvalid, Message: fmt.Sprintf("%.256q is not a clean absolute path", at), Hint: "name paths as clove diff lists them"}
		}
	}
	chosen, missing := rootfs.Chosen(changes, paths)
	if len(missing) > 0 {
		return nil, &agent.Error{Kind: agent.KindNotFound, Message: "the run changed nothing at " + missing[0], Hint: "clove diff lists what it changed"}
	}
	return chosen, nil
}
