package resolve

import (
	"cmp"
	"path/filepath"

	"clove.run/clove/agent"
	"clove.run/clove/policies/settings"
)

// placeHome names the folder of a kept home: the workspace, or where the caller is. It comes behind
// the command, which may decide over the workspace.
func (b *builder) placeHome() error {
	h := b.spec.Files.Home
	if h == nil {
		return b.checkKept()
	}
	real, err := filepath.EvalSymlinks(cmp.Or(b.spec.Files.Workspace, b.host.Dir))
	if err != nil {
		return agent.Failed("--"+settings.KeptHome, err)
	}
	h.Folder = real
	if err := b.spec.ValidateHome(); err != nil {
		f := agent.FailureOf(err)
		return invalid(settings.KeptHome, f.Hint, "%s", f.Message)
	}
	return b.checkKept()
}

func (b *builder) checkKept() error {
	if err := b.spec.ValidateKeep(); err != nil {
		f := agent.FailureOf(err)
		return invalid(settings.Keep, f.Hint, "%s", f.Message)
	}
	return nil
}
