package interpreter

import (
	"debug/elf"
	"encoding/binary"
	"slices"
	"strings"
	"testing"
)

// elfHeader returns the beginning of a program.
func elfHeader(class byte, machine uint16) string {
	header := make([]byte, 64)
	copy(header, "\x7fELF")
	header[4], header[5] = class, 1
	binary.LittleEndian.PutUint16(header[18:], machine)
	return string(header)
}

func TestInterpreterLine(t *testing.T) {
	for text, want := range map[string]Line{
		"#!/bin/sh\n":                       {Program: "/bin/sh"},
		"#!/bin/sh":                         {Program: "/bin/sh"},
		"#! \t/bin/sh\t-e  -x \r\nrest":     {Program: "/bin/sh", Argument: []string{"-e  -x"}},
		"#!/usr/bin/env python3\n":          {Program: "python3", ViaPATH: true},
		"#!/usr/bin/env\tpython3":           {Program: "python3", ViaPATH: true},
		"#!/usr/bin/env -S node --flag a\n": {Program: "node", ViaPATH: true, Argument: []string{"--flag", "a"}},
		"#!/usr/bin/env -S A=1 node\n":      {Program: "/usr/bin/env", Argument: []string{"-S A=1 node"}},
		"#!/usr/bin/env -S node 'a b'\n":    {Program: "/usr/bin/env", Argument: []string{"-S node 'a b'"}},
		"#!/usr/bin/env python3 -u\n":       {Program: "/usr/bin/env", Argument: []string{"python3 -u"}}, // the kernel passes one argument
		"#!/usr/bin/env\n":                  {Program: "/usr/bin/env"},
		"#!\n":                              {}, "#!  ": {}, "": {}, "#": {}, " #!/bin/sh": {}, "\x7fELF": {},
	} {
		got, found := Head(text).Line()
		if found != (want.Program != "") || got.Program != want.Program || got.ViaPATH != want.ViaPATH || !slices.Equal(got.Argument, want.Argument) {
			t.Errorf("%q: %+v, %v", text, got, found)
		}
	}
}

func TestMachine(t *testing.T) {
	swapped := []byte(elfHeader(2, 0))
	swapped[elf.EI_DATA], swapped[19] = byte(elf.ELFDATA2MSB), byte(elf.EM_S390)
	for _, c := range []struct {
		head string
		want elf.Machine
		is   bool
	}{
		{elfHeader(2, uint16(elf.EM_X86_64)), elf.EM_X86_64, true},
		{elfHeader(1, uint16(elf.EM_386)), elf.EM_386, true},
		{elfHeader(1, uint16(elf.EM_X86_64)), elf.EM_386, true}, // x32
		{elfHeader(2, uint16(elf.EM_AARCH64)), elf.EM_AARCH64, true},
		{string(swapped), elf.EM_S390, true},
		{"\x7fELF", elf.EM_NONE, false},
		{"#!/bin/sh", elf.EM_NONE, false},
	} {
		if got, is := Head(c.head).Machine(); got != c.want || is != c.is {
			t.Errorf("%q: %v, %v", c.head, got, is)
		}
	}
}

func FuzzHead(f *testing.F) {
	for _, seed := range []string{"#!/bin/sh -e\n", "#!/usr/bin/env -S a b", "\x7fELF", elfHeader(2, 62), "#! \t\r\n"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		line, found := Head(text).Line()
		if found && (line.Program == "" || strings.ContainsAny(line.Program, " \t\n")) {
			t.Errorf("%q gave %+v", text, line)
		}
		Head(text).Machine()
	})
}
