package main

import (
	"path"
	"path/filepath"
	"slices"
	"strings"

	"clove.run/clove/agent"
)

// virtualDir is where uv, poetry, pipenv and VS Code make a project's virtual environment.
const virtualDir = ".venv"

// pythonFor is what --python would have to name for a Python script: what it does name, or the
// virtual environment beside the script, unless the caller is in another one.
func (r *request) pythonFor(script scriptFile) string {
	if choice := r.flags.String(flagPython); choice != "" || r.foreignRoot() {
		return choice
	}
	beside := filepath.Join(filepath.Dir(script.real), virtualDir)
	active, _ := r.host.lookup("VIRTUAL_ENV")
	if active != "" || !exists(filepath.Join(beside, virtualConfig)) {
		return ""
	}
	return beside
}

// chosenPython is what pythonFor says. A member of cloved's group may show no
// directory but the workspace, so theirs is used where that shows it.
func (r *request) chosenPython(choice string, script scriptFile) ([]string, error) {
	found, err := finder{r.host, filepath.Dir(script.real)}.python(choice)
	own := r.flags.String(flagPython) == ""
	if err != nil && own && agent.KindOf(err) == agent.KindNotFound {
		err = &agent.Error{Kind: agent.KindNotFound, Step: "interpreter", Message: "the virtual environment " + choice + " has no Python that works",
			Hint: "make it anew, or name another one, such as --" + flagPython + " python3"}
	}
	if err != nil {
		return nil, err
	}
	if own && r.host.UID != 0 && len(found.Links) == 0 && slices.Equal(found.Prefixes, []string{choice}) {
		found = interpreter{Path: r.inWorkspace(found.Path), Bin: r.inWorkspace(found.Bin)}
	}
	return []string{r.use(found)}, nil
}

// inWorkspace is where a path below the workspace appears inside.
func (r *request) inWorkspace(host string) string {
	return path.Join(agent.WorkspaceDir, strings.TrimPrefix(host, r.spec.Files.Workspace))
}

// unseen is the first word of a command that names a file of the caller's folder, where the
// agent had no workspace to find it in; empty: none.
func unseen(spec agent.Spec, dir string) string {
	if spec.Files.Workspace != "" || spec.Files.Rootfs != "" {
		return ""
	}
	for i, word := range spec.Command {
		inPath := i == 0 && !strings.Contains(word, "/")
		if !inPath && word != "" && !strings.HasPrefix(word, "-") && filepath.IsLocal(word) && isFile(filepath.Join(dir, word)) {
			return word
		}
	}
	return ""
}

// tellUnseen names the flag that shows the caller's folder.
func (p *program) tellUnseen(spec agent.Spec, dir string) {
	if word := unseen(spec, dir); word != "" {
		p.say("clove", cyan, word+" is a file of this folder, which the agent does not see")
		p.say("hint", cyan, "--workspace . shows the folder to a command; clove run SCRIPT does so by itself")
	}
}
