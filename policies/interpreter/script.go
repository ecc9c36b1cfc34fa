package interpreter

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// Head is the beginning of a file, as much as the kernel reads to decide how to execute it:
// BINPRM_BUF_SIZE of linux/binfmts.h, in bytes.
type Head []byte

const headBytes = 256

// ReadHead returns fewer bytes for a shorter file.
func ReadHead(path string) (Head, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, headBytes))
	return b, err
}

// Line is what follows #! in a script's first line.
type Line struct {
	Program  string   // a path, or with ViaPATH a name
	ViaPATH  bool     // the line says env, which looks in PATH
	Argument []string // at most one, unless env splits them (-S)
}

// Line parses the first line as the kernel does: everything after the program is one
// argument. For /usr/bin/env it returns the program that env would run.
func (h Head) Line() (Line, bool) {
	text, found := bytes.CutPrefix(h, []byte("#!"))
	if !found {
		return Line{}, false
	}
	text, _, _ = bytes.Cut(text, []byte("\n"))
	program := strings.Trim(string(text), " \t\r")
	if program == "" {
		return Line{}, false
	}
	argument := ""
	if end := strings.IndexAny(program, " \t"); end >= 0 {
		program, argument = program[:end], strings.Trim(program[end:], " \t")
	}
	if words, simple := envWords(program, argument); simple {
		return Line{Program: words[0], ViaPATH: true, Argument: words[1:]}, true
	}
	line := Line{Program: program}
	if argument != "" {
		line.Argument = []string{argument}
	}
	return line, true
}

// envWords reads "env NAME" and "env -S NAME ARGS". Everything else that env can do
// (options, variables, quotes) is left to env itself inside.
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

// IsPython decides by the program's name: python, python3, python3.11.
func IsPython(program string) bool { return strings.HasPrefix(filepath.Base(program), "python") }

// Machine reads the ELF header's e_machine. The 32-bit ABI of x86 has a number of its own.
// x32 shares that of x86-64 and differs in the class; it counts as a foreign machine,
// because the filter refuses its system calls.
func (h Head) Machine() (elf.Machine, bool) {
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
