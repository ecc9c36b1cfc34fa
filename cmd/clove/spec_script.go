package main

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"io"
	"os"
	"path/filepath"
	"strings"

	"clove.run/clove/agent"
)

// head is the beginning of a file, as much as the kernel looks at:
// BINPRM_BUF_SIZE of linux/binfmts.h.
type head []byte

const headBytes = 256

// readHead returns less for a shorter file.
func readHead(path string) (head, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, headBytes))
	return b, err
}

// scriptLine is what stands behind #!.
type scriptLine struct {
	program  string // a path, or with viaPATH a name
	viaPATH  bool
	argument []string // at most one, unless env split them
}

// interpreterLine reads the first line as the kernel does: everything behind
// the program is one argument. /usr/bin/env is seen through.
func (h head) interpreterLine() (scriptLine, bool) {
	text, found := bytes.CutPrefix(h, []byte("#!"))
	if !found {
		return scriptLine{}, false
	}
	text, _, _ = bytes.Cut(text, []byte("\n"))
	program := strings.Trim(string(text), " \t\r")
	if program == "" {
		return scriptLine{}, false
	}
	argument := ""
	if end := strings.IndexAny(program, " \t"); end >= 0 {
		program, argument = program[:end], strings.Trim(program[end:], " \t")
	}
	if words, simple := envWords(program, argument); simple {
		return scriptLine{program: words[0], viaPATH: true, argument: words[1:]}, true
	}
	line := scriptLine{program: program}
	if argument != "" {
		line.argument = []string{argument}
	}
	return line, true
}

// envWords reads "env NAME" and "env -S NAME ARGS". Whatever else env can do,
// it can do by itself.
func envWords(program, argument string) (words []string, simple bool) {
	if filepath.Base(program) != "env" {
		return nil, false
	}
	rest, split := strings.CutPrefix(argument, "-S")
	words = strings.Fields(rest)
	if len(words) == 0 || strings.HasPrefix(words[0], "-") || strings.Contains(words[0], "=") || (!split && len(words) > 1) {
		return nil, false
	}
	return words, !strings.ContainsAny(rest, `'"\$`)
}

// isPython tells by the name: python, python3, python3.11.
func isPython(program string) bool { return strings.HasPrefix(filepath.Base(program), "python") }

// lineCommand finds the interpreter that a script itself names.
func (r *request) lineCommand(line scriptLine, script scriptFile) ([]string, error) {
	if r.foreignRoot() {
		return append([]string{line.program}, line.argument...), nil
	}
	f := finder{r.host, filepath.Dir(script.real)}
	var found interpreter
	var err error
	if isPython(line.program) && line.viaPATH {
		if choice := r.pythonFor(script); choice != "" {
			command, err := r.chosenPython(choice, script)
			return append(command, line.argument...), err
		}
	}
	switch choice := r.flags.String(flagPython); {
	case choice != "":
		found, err = f.python(choice)
	case line.viaPATH:
		found, err = f.search(line.program)
	case !isProgram(line.program):
		return nil, &agent.Error{Kind: agent.KindNotFound, Step: "script", Message: r.script + " wants " + line.program + ", which is not a program here",
			Hint: "install it, or change the first line of the script"}
	default:
		found, err = f.follow(line.program)
	}
	if err != nil {
		return nil, err
	}
	return append([]string{r.use(found)}, line.argument...), nil
}

// checkProgram refuses a file that the kernel would not execute.
func (r *request) checkProgram(script scriptFile, h head) error {
	machine, isELF := h.machine()
	switch {
	case !isELF:
		return invalid("", "begin it with a line such as #!/bin/sh, or give it an ending: .py .js .mjs .sh .rb .pl",
			"%s is neither a program nor a script that clove knows", r.script)
	case machine != r.host.Machine:
		return invalid("", "build it for this machine", "%s is a program for another architecture: %s, and this is %s", r.script, machineName(machine), machineName(r.host.Machine))
	case !isProgram(script.real):
		return invalid("", "chmod +x "+r.script, "%s is not executable", r.script)
	}
	return nil
}

// machineName is the word that uname and packages use.
func machineName(m elf.Machine) string { return strings.ToLower(strings.TrimPrefix(m.String(), "EM_")) }

// machine reads the ELF header's e_machine. The 32-bit ABI of x86 has a number
// of its own; x32 does not, and counts as foreign because its calls are refused.
func (h head) machine() (elf.Machine, bool) {
	const endOfMachine = 20
	if len(h) < endOfMachine || string(h[:4]) != elf.ELFMAG {
		return elf.EM_NONE, false
	}
	var order binary.ByteOrder = binary.LittleEndian
	if elf.Data(h[elf.EI_DATA]) == elf.ELFDATA2MSB {
		order = binary.BigEndian
	}
	machine := elf.Machine(order.Uint16(h[18:endOfMachine]))
	if elf.Class(h[elf.EI_CLASS]) != elf.ELFCLASS64 && machine == elf.EM_X86_64 {
		return elf.EM_386, true
	}
	return machine, true
}
