package main

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"clove.run/clove/agent"
)

// language is a kind of script.
type language struct {
	endings  []string // of a script's name
	programs []string // on the host, the preferred first
	inside   string   // in a root of the user's own (--rootfs)
}

var languages = []language{
	{[]string{".py"}, []string{"python3", "python"}, pythonProgram},
	{[]string{".js", ".mjs"}, []string{"node", "nodejs"}, "node"},
	{[]string{".sh"}, []string{"bash", "sh"}, "sh"},
	{[]string{".rb"}, []string{"ruby"}, "ruby"},
	{[]string{".pl"}, []string{"perl"}, "perl"},
}

const pythonProgram = "python3"

// readCommand decides what is executed inside, and what must appear there for
// it: the workspace, and the interpreter's own directories.
func (r *request) readCommand() error {
	if r.script == "" {
		return r.plainCommand()
	}
	shown, err := r.findScript()
	if err != nil {
		return err
	}
	interpreter, err := r.interpretScript(shown)
	if err != nil {
		return err
	}
	r.spec.Command = slices.Concat(interpreter, []string{shown.inside}, r.args)
	return nil
}

// scriptFile is a script on both sides of the wall.
type scriptFile struct {
	real   string // canonical path on the host
	inside string // path inside
}

// findScript places the script: in the workspace that was named, else in its
// own directory, which becomes the workspace. A program of the base system
// stays where it is.
func (r *request) findScript() (scriptFile, error) {
	given := r.host.absolute(r.script)
	real, err := r.checkScript(given)
	if err != nil {
		return scriptFile{}, err
	}
	workspace := r.spec.Files.Workspace
	if workspace == "" {
		if !r.foreignRoot() && r.isInstalled(real) {
			return scriptFile{real, real}, nil
		}
		// A link keeps its own directory only if that holds the script too.
		if workspace, err = filepath.EvalSymlinks(filepath.Dir(given)); err != nil {
			return scriptFile{}, agent.Failed("script", err)
		}
		if !within(real, workspace) {
			workspace = filepath.Dir(real)
		}
		if err := checkWorkspace(r.script, workspace); err != nil {
			return scriptFile{}, err
		}
		r.spec.Files.Workspace = workspace
	}
	if !within(real, workspace) {
		return scriptFile{}, invalid(flagWorkspace, "name a workspace that holds the script, or leave the flag away", "%s is not in %s", r.script, workspace)
	}
	return scriptFile{real, path.Join(agent.WorkspaceDir, real[len(workspace):])}, nil
}

// isInstalled tells a program of the base system from an agent: people keep
// agents below /opt and /usr/local too, in directories of their own.
func (r *request) isInstalled(program string) bool {
	own := within(program, "/opt") || within(program, "/usr/local")
	return r.host.inBase(program) && (!own || slices.Contains(sharedDirs, filepath.Dir(program)))
}

// checkScript refuses what can never be a script and resolves the rest.
func (r *request) checkScript(given string) (string, error) {
	info, err := os.Stat(given)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		hint := "check the path; a program of the system runs as clove run -- " + r.script
		if strings.Contains(r.script, "/") {
			hint = "check the path; it is one of the host's"
		}
		return "", &agent.Error{Kind: agent.KindNotFound, Step: "script", Message: r.script + " does not exist", Hint: hint}
	case err != nil:
		return resolve("script", given, r.script)
	case info.IsDir():
		return "", invalid("", "name the script in it: clove run "+filepath.Join(r.script, "agent.py"), "%s is a directory, not a script", r.script)
	case !info.Mode().IsRegular():
		return "", invalid("", "name a file", "%s is not a regular file", r.script)
	}
	return resolve("script", given, r.script)
}

// interpretScript returns what stands before the script in its command:
// nothing for a program. The interpreter is always named, even where the
// kernel would find it by the script's first line: the script need not be
// executable then, and env need not find what the host's PATH has.
func (r *request) interpretScript(script scriptFile) ([]string, error) {
	ending := strings.ToLower(filepath.Ext(script.real))
	head, err := readHead(script.real)
	if err != nil {
		return nil, &agent.Error{Kind: agent.KindInvalid, Step: "script", Message: "cannot read " + r.script, Err: err}
	}
	line, hasLine := head.interpreterLine()
	index := slices.IndexFunc(languages, func(l language) bool { return slices.Contains(l.endings, ending) })
	switch {
	case index >= 0 && !(hasLine && ending == ".sh"): // a shell script's own line knows which shell
		return r.languageCommand(languages[index], script)
	case r.flags.String(flagPython) != "" && !(hasLine && isPython(line.program)):
		return nil, invalid(flagPython, "leave the flag away", "%s is not a Python script", r.script)
	case hasLine:
		return r.lineCommand(line, script)
	}
	return nil, r.checkProgram(script, head)
}

// languageCommand finds the interpreter for a script by its ending.
func (r *request) languageCommand(l language, script scriptFile) ([]string, error) {
	choice := r.flags.String(flagPython)
	if l.inside == pythonProgram {
		choice = r.pythonFor(script)
	}
	switch {
	case choice != "" && l.inside != pythonProgram:
		return nil, invalid(flagPython, "leave the flag away", "%s is not a Python script", r.script)
	case r.foreignRoot() && choice != "":
		return []string{choice}, nil
	case r.foreignRoot():
		return []string{l.inside}, nil
	}
	if choice != "" {
		return r.chosenPython(choice, script)
	}
	found, err := finder{r.host, filepath.Dir(script.real)}.search(l.programs...)
	if err != nil {
		return nil, err
	}
	return []string{r.use(found)}, nil
}

// use makes an interpreter appear inside and returns its path.
func (r *request) use(i interpreter) string {
	r.spec.Files.Prefixes = append(r.spec.Files.Prefixes, i.Prefixes...)
	r.spec.Files.Binds = append(r.spec.Files.Binds, i.Links...)
	if i.Bin != "" {
		r.path = append(r.path, i.Bin)
	}
	return i.Path
}

// plainCommand leaves the command to the PATH inside, unless the host would
// run an interpreter from outside the base system by that name.
func (r *request) plainCommand() error {
	r.spec.Command = slices.Clone(r.args)
	name := r.args[0]
	choice := r.flags.String(flagPython)
	if choice != "" && (strings.Contains(name, "/") || !isPython(name)) {
		return invalid(flagPython, "leave the flag away", "%s is not Python", name)
	}
	if r.foreignRoot() {
		if choice != "" {
			r.spec.Command[0] = choice
		}
		return nil
	}
	f := finder{r.host, r.host.Dir}
	var found interpreter
	var err error
	switch {
	case choice != "":
		if found, err = f.python(choice); err != nil {
			return err
		}
	case path.IsAbs(name) && !r.host.inBase(path.Clean(name)) && isProgram(name):
		found, err = f.follow(path.Clean(name))
	case !strings.Contains(name, "/"):
		found, err = f.search(name)
	default:
		return nil
	}
	// What is not found, or has no prefix that could be shown, is for
	// clove-init to look up: it may exist inside.
	if err == nil && (choice != "" || len(found.Prefixes) > 0) {
		r.spec.Command[0] = r.use(found)
	}
	return nil
}
