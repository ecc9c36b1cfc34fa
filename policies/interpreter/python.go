package interpreter

import (
	"os"
	"path/filepath"
	"strings"

	"clove.run/clove/agent"
	"clove.run/clove/policies/host"
)

// virtualConfig marks a virtual environment (PEP 405).
const virtualConfig = "pyvenv.cfg"

// IsVirtual reports whether dir is a Python virtual environment.
func IsVirtual(dir string) bool { return host.Exists(filepath.Join(dir, virtualConfig)) }

// virtualHome returns the directory of the interpreter that program's virtual environment
// was made with: the key home of pyvenv.cfg. The standard library is there.
func virtualHome(program string) (home string, isVirtual bool) {
	text, err := os.ReadFile(filepath.Join(filepath.Dir(filepath.Dir(program)), virtualConfig))
	if err != nil {
		return "", false
	}
	for line := range strings.Lines(string(text)) {
		key, value, found := strings.Cut(line, "=")
		if home := strings.TrimSpace(value); found && strings.EqualFold(strings.TrimSpace(key), "home") && filepath.IsAbs(home) {
			return filepath.Clean(home), true
		}
	}
	return "", false
}

// Python finds the interpreter that choice names: a program, a name in PATH, or the
// directory of a virtual environment or installation.
func (f Finder) Python(choice string) (Interpreter, error) {
	// A word that is no file is a name in PATH. One that is a file is that file: `--python
	// .venv` means the folder.
	if !strings.Contains(choice, "/") && !host.Exists(filepath.Join(f.Host.Dir, choice)) {
		return f.Search(choice)
	}
	path := f.Host.Absolute(choice)
	if host.IsDirectory(path) {
		for _, name := range []string{"python3", "python"} {
			if program := filepath.Join(path, "bin", name); host.IsProgram(program) {
				return f.Follow(program)
			}
		}
	}
	if !host.IsProgram(path) {
		return Interpreter{}, &agent.Error{Kind: agent.KindNotFound, Step: "--python", Message: choice + " is not a Python interpreter",
			Hint: "name a program such as .venv/bin/python, or the directory of a virtual environment"}
	}
	return f.Follow(path)
}
