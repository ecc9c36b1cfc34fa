package main

import (
	"os"
	"path/filepath"
	"strings"

	"clove.run/clove/agent"
)

// virtualConfig marks a virtual environment (PEP 405).
const virtualConfig = "pyvenv.cfg"

// virtualHome returns the directory of the interpreter that the virtual
// environment of program was made with; its standard library is there.
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

// python finds what --python names: a program, a name in PATH, or the
// directory of a virtual environment or installation.
func (f finder) python(choice string) (interpreter, error) {
	if !strings.Contains(choice, "/") && !exists(filepath.Join(f.host.Dir, choice)) {
		return f.search(choice)
	}
	path := f.host.absolute(choice)
	if isDirectory(path) {
		for _, name := range []string{"python3", "python"} {
			if program := filepath.Join(path, "bin", name); isProgram(program) {
				return f.follow(program)
			}
		}
	}
	if !isProgram(path) {
		return interpreter{}, &agent.Error{Kind: agent.KindNotFound, Step: "--" + flagPython, Message: choice + " is not a Python interpreter",
			Hint: "name a program such as .venv/bin/python, or the directory of a virtual environment"}
	}
	return f.follow(path)
}
