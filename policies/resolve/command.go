package resolve

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"clove.run/clove/agent"
	"clove.run/clove/internal/document"
	"clove.run/clove/policies/host"
	"clove.run/clove/policies/interpreter"
	"clove.run/clove/policies/settings"
)

// language is a kind of script. Its ending decides and not its content: an agent without a
// #! line must run too.
type language struct {
	endings  []string // of a script's name
	programs []string // on the host, the preferred first
	inside   string   // in a root of the user's own (--rootfs)
}

var languages = []language{
	// python3 first: `python` may be missing, or be Python 2.
	{[]string{".py"}, []string{"python3", "python"}, pythonProgram},
	// nodejs is what Debian called the program before node.
	{[]string{".js", ".mjs"}, []string{"node", "nodejs"}, "node"},
	{[]string{".sh"}, []string{"bash", "sh"}, "sh"},
	{[]string{".rb"}, []string{"ruby"}, "ruby"},
	{[]string{".pl"}, []string{"perl"}, "perl"},
}

// IsScript reports whether a name has the ending of a script.
func IsScript(name string) bool {
	ending := strings.ToLower(filepath.Ext(name))
	return slices.ContainsFunc(languages, func(l language) bool { return slices.Contains(l.endings, ending) })
}

// pythonProgram is the name that a foreign root must have Python under.
const pythonProgram = "python3"

// readCommand decides what is executed inside, and what must appear there for it: the
// workspace and the interpreter's directories.
func (b *builder) readCommand() error {
	switch {
	case b.asked.Program != "":
		return b.ownProgram()
	case b.asked.Script == "":
		return b.plainCommand()
	}
	shown, err := b.findScript()
	if err != nil {
		return err
	}
	interpreter, err := b.interpretScript(shown)
	if err != nil {
		return err
	}
	b.spec.Command = slices.Concat(interpreter, []string{shown.inside}, b.asked.Args)
	return nil
}

// scriptFile is a script, by its path outside and inside the sandbox.
type scriptFile struct {
	real   string // canonical path on the host
	inside string // path inside
}

// findScript decides where the script appears inside: in the workspace that was named, or
// in its own directory, which then becomes the workspace. A program of the base system
// keeps its path.
func (b *builder) findScript() (scriptFile, error) {
	given := b.host.Absolute(b.asked.Script)
	real, err := b.checkScript(given)
	if err != nil {
		return scriptFile{}, err
	}
	workspace := b.spec.Files.Workspace
	if workspace == "" {
		if !b.foreignRoot() && b.isInstalled(real) {
			return scriptFile{real, real}, nil
		}
		// For a script that is a link, the link's directory is the workspace if the
		// script's file is in it as well; otherwise the file's directory, since the link
		// would lead out of the workspace.
		if workspace, err = filepath.EvalSymlinks(filepath.Dir(given)); err != nil {
			return scriptFile{}, agent.Failed("script", err)
		}
		if !host.Within(real, workspace) {
			workspace = filepath.Dir(real)
		}
		if err := host.CheckWorkspace(b.asked.Script, workspace); err != nil {
			return scriptFile{}, err
		}
		b.spec.Files.Workspace = workspace
	}
	if !host.Within(real, workspace) {
		return scriptFile{}, invalid(settings.Workspace, "name a workspace that holds the script, or omit the flag", "%s is not in %s", b.asked.Script, workspace)
	}
	return scriptFile{real, path.Join(agent.WorkspaceDir, real[len(workspace):])}, nil
}

// isInstalled distinguishes a program of the base system from an agent: people keep agents
// below /opt and /usr/local too, in directories of their own.
func (b *builder) isInstalled(program string) bool {
	own := host.Within(program, "/opt") || host.Within(program, "/usr/local")
	return b.host.InBase(program) && (!own || slices.Contains(host.SharedDirs, filepath.Dir(program)))
}

// checkScript rejects what can never be a script and returns its canonical path. It runs
// before anything is read, because opening a FIFO would wait for a writer.
func (b *builder) checkScript(given string) (string, error) {
	info, err := os.Stat(given)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		// A bare name may be meant as a command.
		hint := "check the path; a program of the system runs as clove run -- " + b.asked.Script
		if strings.Contains(b.asked.Script, "/") {
			hint = "check the path; it is one of the host's"
		}
		names := beside(given)
		if !strings.Contains(b.asked.Script, "/") {
			for _, a := range Agents(b.host) {
				names = append(names, a.Name)
			}
		}
		if near := document.Nearest(filepath.Base(given), names); near != "" {
			hint = "did you mean " + near + "? " + hint
		}
		return "", &agent.Error{Kind: agent.KindNotFound, Step: "script", Message: b.asked.Script + " does not exist", Hint: hint}
	case err != nil:
		return host.Resolve("script", given, b.asked.Script)
	case info.IsDir():
		return "", invalid("", "name the script in it: clove run "+filepath.Join(b.asked.Script, "agent.py"), "%s is a directory, not a script", b.asked.Script)
	case !info.Mode().IsRegular():
		return "", invalid("", "name a file", "%s is not a regular file", b.asked.Script)
	}
	return host.Resolve("script", given, b.asked.Script)
}

// beside are the names in the directory of a script that is not there. They are seen with the caller's rights.
func beside(given string) (names []string) {
	entries, _ := os.ReadDir(filepath.Dir(given)) // none if it cannot be read
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// interpretScript returns the words that come before the script in its command, none for a
// program. The interpreter is named even where the kernel would find it by the script's
// first line: the script then need not be executable, and the PATH inside need not be the
// host's.
func (b *builder) interpretScript(script scriptFile) ([]string, error) {
	ending := strings.ToLower(filepath.Ext(script.real))
	head, err := interpreter.ReadHead(script.real)
	if err != nil {
		return nil, &agent.Error{Kind: agent.KindInvalid, Step: "script", Message: "cannot read " + b.asked.Script, Err: err}
	}
	line, hasLine := head.Line()
	// The ending wins over the first line, except for .sh: the line may name another shell.
	index := slices.IndexFunc(languages, func(l language) bool { return slices.Contains(l.endings, ending) })
	switch {
	case index >= 0 && !(hasLine && ending == ".sh"): // a shell script's first line names its shell
		return b.languageCommand(languages[index], script)
	case b.asked.Text(settings.Python) != "" && !(hasLine && interpreter.IsPython(line.Program)):
		return nil, invalid(settings.Python, "omit the flag", "%s is not a Python script", b.asked.Script)
	case hasLine:
		return b.lineCommand(line, script)
	}
	return nil, b.checkProgram(script, head)
}

// languageCommand finds the interpreter for a script by its ending.
func (b *builder) languageCommand(l language, script scriptFile) ([]string, error) {
	choice := b.asked.Text(settings.Python)
	if l.inside == pythonProgram {
		choice = b.pythonFor(script)
	}
	switch {
	case choice != "" && l.inside != pythonProgram:
		return nil, invalid(settings.Python, "omit the flag", "%s is not a Python script", b.asked.Script)
	// Nothing can be checked: the interpreter is in a root that this host does not run.
	case b.foreignRoot() && choice != "":
		return []string{choice}, nil
	case b.foreignRoot():
		return []string{l.inside}, nil
	}
	if choice != "" {
		return b.chosenPython(choice, script)
	}
	found, err := b.finder(filepath.Dir(script.real)).Search(l.programs...)
	if err != nil {
		return nil, err
	}
	return []string{b.use(found)}, nil
}

// finder searches from dir for the files that choose a version manager's version.
func (b *builder) finder(dir string) interpreter.Finder {
	return interpreter.Finder{Host: b.host, Dir: dir}
}

// use adds an interpreter's directories to the spec and returns its path.
func (b *builder) use(i interpreter.Interpreter) string {
	b.spec.Files.Prefixes = append(b.spec.Files.Prefixes, i.Prefixes...)
	b.spec.Files.Binds = append(b.spec.Files.Binds, i.Links...)
	if i.Bin != "" {
		b.path = append(b.path, i.Bin)
	}
	return i.Path
}

// plainCommand leaves the command to the PATH inside. One exception: if the host would run
// a program outside the base system by that name (pyenv, nvm, a virtual environment), that
// program is shown inside, or the command would run another version than on the host.
func (b *builder) plainCommand() error {
	b.spec.Command = slices.Clone(b.asked.Args)
	name := b.asked.Args[0]
	choice := b.asked.Text(settings.Python)
	if choice != "" && (strings.Contains(name, "/") || !interpreter.IsPython(name)) {
		return invalid(settings.Python, "omit the flag", "%s is not Python", name)
	}
	if b.foreignRoot() {
		if choice != "" {
			b.spec.Command[0] = choice
		}
		return nil
	}
	f := b.finder(b.host.Dir)
	var found interpreter.Interpreter
	var err error
	switch {
	case choice != "":
		if found, err = f.Python(choice); err != nil {
			return err
		}
	case path.IsAbs(name) && !b.host.InBase(path.Clean(name)) && host.IsProgram(name):
		found, err = f.Follow(path.Clean(name))
	case !strings.Contains(name, "/"):
		found, err = f.Search(name)
	default:
		return nil
	}
	// A program that is not found here, or needs no prefix, is left to clove-init: it may
	// exist inside.
	if err == nil && (choice != "" || len(found.Prefixes) > 0) {
		b.spec.Command[0] = b.use(found)
	}
	return nil
}
