package resolve

import (
	"path"
	"path/filepath"
	"slices"
	"strings"

	"clove.run/clove/agent"
	"clove.run/clove/policies/interpreter"
	"clove.run/clove/policies/settings"
)

// virtualDir is the folder in which uv, poetry, pipenv and VS Code make a project's virtual environment.
const virtualDir = ".venv"

// pythonFor returns the choice of an interpreter for a Python script: the one that was asked
// for, or the virtual environment beside the script, unless the caller has activated another
// one. Empty: the first in PATH.
func (b *builder) pythonFor(script scriptFile) string {
	if choice := b.asked.Text(settings.Python); choice != "" || b.foreignRoot() {
		return choice
	}
	beside := filepath.Join(filepath.Dir(script.real), virtualDir)
	active, _ := b.host.Lookup("VIRTUAL_ENV")
	if active != "" || !interpreter.IsVirtual(beside) {
		return ""
	}
	return beside
}

// chosenPython returns the command of pythonFor's choice. A member of cloved's group may show
// no directory of the host but the workspace, so a virtual environment in it is used at its
// path there.
func (b *builder) chosenPython(choice string, script scriptFile) ([]string, error) {
	found, err := b.finder(filepath.Dir(script.real)).Python(choice)
	own := b.asked.Text(settings.Python) == ""
	if err != nil && own && agent.KindOf(err) == agent.KindNotFound {
		err = &agent.Error{Kind: agent.KindNotFound, Step: "interpreter", Message: "the virtual environment " + choice + " has no Python that works",
			Hint: "make it anew, or name another one, such as --python python3"}
	}
	if err != nil {
		return nil, err
	}
	if own && b.host.UID != 0 && len(found.Links) == 0 && slices.Equal(found.Prefixes, []string{choice}) {
		found = interpreter.Interpreter{Path: b.inWorkspace(found.Path), Bin: b.inWorkspace(found.Bin)}
	}
	return []string{b.use(found)}, nil
}

// inWorkspace returns where a path below the workspace appears inside.
func (b *builder) inWorkspace(name string) string {
	return path.Join(agent.WorkspaceDir, strings.TrimPrefix(name, b.spec.Files.Workspace))
}
