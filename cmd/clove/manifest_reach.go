package main

import (
	"strings"

	"clove.run/clove/agent"
	"clove.run/clove/policies/interpreter"
	"clove.run/clove/policies/resolve"
	"clove.run/clove/policies/settings"
)

// reaching are the settings of a manifest that take something of the host or of its user into the
// run, with the words for it.
var reaching = []struct{ setting, words string }{
	{settings.Volume, "shows "}, {settings.Mount, "mounts "}, {settings.HomeDir, "shows of your home "}, {settings.Rootfs, "has the root "},
	{settings.Workspace, "works on "}, {settings.GitDir, "shows the repository "}, {settings.EnvironmentPass, "passes on your "},
	{settings.EnvFile, "reads variables from "}, {settings.Allow, "reaches "}, {settings.HostPort, "reaches the host's port "}, {settings.Publish, "publishes "},
	{settings.OnWarn, "runs as you or posts to "}, {settings.OnEnd, "runs as you or posts to "}, {settings.OnAsk, "asks as you "},
}

// reportReach says at the start what a manifest takes of the host: the file may be another
// person's, and none of this is seen in the command line.
func reportReach(s *screen, m *resolve.Manifest, spec agent.Spec) {
	if m == nil {
		return
	}
	var parts []string
	for _, row := range reaching {
		if texts := m.Written.Values[row.setting]; len(texts) > 0 {
			parts = append(parts, row.words+strings.Join(texts, ", "))
		}
	}
	// The folder of the script appears with it, and a link leads to that of its file.
	if m.Written.Script != "" && !m.Written.Has(settings.Workspace) && !m.Holds(spec.Files.Workspace) {
		parts = append(parts, "works on "+spec.Files.Workspace)
	}
	if m.Written.Program != "" {
		for _, b := range spec.Files.Binds {
			if strings.HasPrefix(b.Target, interpreter.ProgramDir+"/") {
				parts = append(parts, "shows its program "+b.Source)
			}
		}
		if !spec.Kernel.HasModels() && len(m.Written.Login) > 0 {
			parts = append(parts, "reaches "+strings.Join(m.Written.Login, ", "))
		}
	}
	if !m.HoldsInstructions() {
		parts = append(parts, "tells the model what is in "+m.Written.InstructionsFile)
	}
	if len(parts) > 0 {
		s.say("clove", cyan, m.Source+" "+strings.Join(parts, "; "))
	}
}
