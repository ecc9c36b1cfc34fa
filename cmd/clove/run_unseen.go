package main

import (
	"path/filepath"
	"strings"

	"clove.run/clove/agent"
	"clove.run/clove/policies/host"
)

// unseen returns the first argument of a command that names a file in the caller's folder,
// if the agent had no workspace in which it could find it; otherwise it is empty.
func unseen(spec agent.Spec, dir string) string {
	if spec.Files.Workspace != "" || spec.Files.Rootfs != "" {
		return ""
	}
	for i, argument := range spec.Command {
		// The command itself is looked up in PATH if it has no slash.
		inPath := i == 0 && !strings.Contains(argument, "/")
		if !inPath && argument != "" && !strings.HasPrefix(argument, "-") && filepath.IsLocal(argument) && host.IsFile(filepath.Join(dir, argument)) {
			return argument
		}
	}
	return ""
}

// reportUnseen mentions the flag that shows the caller's folder to the agent.
func reportUnseen(s *screen, spec agent.Spec, dir string) {
	if argument := unseen(spec, dir); argument != "" {
		s.say("clove", cyan, argument+" is a file of this folder, which the agent does not see")
		s.say("hint", cyan, "--workspace . shows the folder to a command; clove run SCRIPT does so by itself")
	}
}
