package resolve

import (
	"debug/elf"
	"path/filepath"
	"strings"

	"clove.run/clove/agent"
	"clove.run/clove/policies/host"
	"clove.run/clove/policies/interpreter"
	"clove.run/clove/policies/settings"
)

// lineCommand finds the interpreter that a script's first line names. With env, a Python
// script may mean a virtual environment; with a path it means that program.
func (b *builder) lineCommand(line interpreter.Line, script scriptFile) ([]string, error) {
	if b.foreignRoot() {
		// The line is taken as it is: clove-init finds out whether the root has the
		// program.
		return append([]string{line.Program}, line.Argument...), nil
	}
	f := b.finder(filepath.Dir(script.real))
	var found interpreter.Interpreter
	var err error
	if interpreter.IsPython(line.Program) && line.ViaPATH {
		if choice := b.pythonFor(script); choice != "" {
			command, err := b.chosenPython(choice, script)
			return append(command, line.Argument...), err
		}
	}
	switch choice := b.asked.Text(settings.Python); {
	case choice != "":
		found, err = f.Python(choice)
	case line.ViaPATH:
		found, err = f.Search(line.Program)
	case !host.IsProgram(line.Program):
		return nil, &agent.Error{Kind: agent.KindNotFound, Step: "script", Message: b.asked.Script + " names the interpreter " + line.Program + ", which is not a program on this host",
			Hint: "install it, or change the first line of the script"}
	default:
		found, err = f.Follow(line.Program)
	}
	if err != nil {
		return nil, err
	}
	return append([]string{b.use(found)}, line.Argument...), nil
}

// checkProgram refuses a file that the kernel would not execute, with the reason: execve(2)
// reports only ENOEXEC or EACCES.
func (b *builder) checkProgram(script scriptFile, h interpreter.Head) error {
	machine, isELF := h.Machine()
	switch {
	case !isELF:
		return invalid("", "begin it with a line such as #!/bin/sh, or give it an ending: .py .js .mjs .sh .rb .pl",
			"%s is neither a program nor a script that clove knows", b.asked.Script)
	case machine != b.host.Machine:
		return invalid("", "build it for this machine", "%s is a program for another architecture: %s, and this is %s", b.asked.Script, machineName(machine), machineName(b.host.Machine))
	case !host.IsProgram(script.real):
		return invalid("", "chmod +x "+b.asked.Script, "%s is not executable", b.asked.Script)
	}
	return nil
}

// machineName is the name that uname(1) and packages use.
func machineName(m elf.Machine) string { return strings.ToLower(strings.TrimPrefix(m.String(), "EM_")) }
