package main

import (
	"debug/elf"
	"slices"
	"strings"
	"testing"
)

func TestScripts(t *testing.T) {
	const dir = "DIR"
	for _, c := range []struct {
		line      string
		command   string
		workspace string
	}{
		{"work/agent.py", "DIR/base/bin/python3 /workspace/agent.py", "DIR/work"},
		{"work/agent.py -- --flag x", "DIR/base/bin/python3 /workspace/agent.py --flag x", "DIR/work"},
		{"DIR/work/agent.py", "DIR/base/bin/python3 /workspace/agent.py", "DIR/work"},
		{"work/UPPER.PY", "DIR/base/bin/python3 /workspace/UPPER.PY", "DIR/work"},
		{"work/agent.js", "DIR/base/bin/node /workspace/agent.js", "DIR/work"},
		{"work/agent.pl", "DIR/base/bin/perl /workspace/agent.pl", "DIR/work"},
		{"work/plain.sh", "DIR/base/bin/bash /workspace/plain.sh", "DIR/work"},
		{"work/posix.sh", "DIR/base/bin/sh -e /workspace/posix.sh", "DIR/work"},
		{"work/env", "DIR/base/bin/python3 /workspace/env", "DIR/work"},
		{"work/env-S", "DIR/base/bin/python3 -u -B /workspace/env-S", "DIR/work"},
		{"work/env-i", "DIR/base/bin/env -i python3 /workspace/env-i", "DIR/work"},
		{"work/program", "/workspace/program", "DIR/work"},
		{"work/program -- a", "/workspace/program a", "DIR/work"},
		{"base/bin/bash", "DIR/base/bin/bash", ""},
		{"work/sub/deep.py --workspace work", "DIR/base/bin/python3 /workspace/sub/deep.py", "DIR/work"},
		{"work/sub/deep.py", "DIR/base/bin/python3 /workspace/deep.py", "DIR/work/sub"},
		{"work/inner-link.py", "DIR/base/bin/python3 /workspace/sub/deep.py", "DIR/work"},
		{"links/outer-link.py", "DIR/base/bin/python3 /workspace/agent.py", "DIR/work"},
		{"linked-work/agent.py", "DIR/base/bin/python3 /workspace/agent.py", "DIR/work"},
		{"work/env --python base/bin/python3.11", "DIR/base/bin/python3.11 /workspace/env", "DIR/work"},
		{"--workspace work -- ls", "ls", "DIR/work"},
		{"-- ls -l --", "ls -l --", ""},
	} {
		b := scriptBench(t)
		spec := b.spec(strings.Fields(strings.ReplaceAll(c.line, dir, b.host.Dir))...)
		command := strings.ReplaceAll(strings.Join(spec.Command, " "), b.host.Dir, dir)
		workspace := strings.ReplaceAll(spec.Files.Workspace, b.host.Dir, dir)
		if command != c.command || workspace != c.workspace {
			t.Errorf("%q:\n%s in %q, want\n%s in %q", c.line, command, workspace, c.command, c.workspace)
		}
	}
}

func scriptBench(t *testing.T) *bench {
	b := interpreterBench(t)
	for name, text := range map[string]string{
		"UPPER.PY": "", "agent.js": "", "agent.pl": "#!/usr/bin/perl -w\n", "plain.sh": "echo\n", "sub/deep.py": "",
		"posix.sh": "#!" + b.host.Dir + "/base/bin/sh -e\n",
		"env":      "#!/usr/bin/env python3\n",
		"env-S":    "#! /usr/bin/env -S python3 -u -B\r\n",
		"env-i":    "#!" + b.host.Dir + "/base/bin/env -i python3\n",
	} {
		b.file("work/"+name, text, 0o644)
	}
	b.file("work/program", elfHeader(2, uint16(elf.EM_X86_64)), 0o755)
	b.file("base/bin/bash", elfHeader(2, uint16(elf.EM_X86_64)), 0o755)
	b.link("sub/deep.py", "work/inner-link.py")
	b.link(b.host.Dir+"/work/agent.py", "links/outer-link.py")
	b.link("work", "linked-work")
	return b
}

func TestInterpreterLine(t *testing.T) {
	for text, want := range map[string]scriptLine{
		"#!/bin/sh\n":                       {program: "/bin/sh"},
		"#!/bin/sh":                         {program: "/bin/sh"},
		"#! \t/bin/sh\t-e  -x \r\nrest":     {program: "/bin/sh", argument: []string{"-e  -x"}},
		"#!/usr/bin/env python3\n":          {program: "python3", viaPATH: true},
		"#!/usr/bin/env\tpython3":           {program: "python3", viaPATH: true},
		"#!/usr/bin/env -S node --flag a\n": {program: "node", viaPATH: true, argument: []string{"--flag", "a"}},
		"#!/usr/bin/env -S A=1 node\n":      {program: "/usr/bin/env", argument: []string{"-S A=1 node"}},
		"#!/usr/bin/env -S node 'a b'\n":    {program: "/usr/bin/env", argument: []string{"-S node 'a b'"}},
		"#!/usr/bin/env python3 -u\n":       {program: "/usr/bin/env", argument: []string{"python3 -u"}}, // the kernel passes one argument
		"#!/usr/bin/env\n":                  {program: "/usr/bin/env"},
		"#!\n":                              {}, "#!  ": {}, "": {}, "#": {}, " #!/bin/sh": {}, "\x7fELF": {},
	} {
		got, found := head(text).interpreterLine()
		if found != (want.program != "") || got.program != want.program || got.viaPATH != want.viaPATH || !slices.Equal(got.argument, want.argument) {
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
		if got, is := head(c.head).machine(); got != c.want || is != c.is {
			t.Errorf("%q: %v, %v", c.head, got, is)
		}
	}
}

func FuzzHead(f *testing.F) {
	for _, seed := range []string{"#!/bin/sh -e\n", "#!/usr/bin/env -S a b", "\x7fELF", elfHeader(2, 62), "#! \t\r\n"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		line, found := head(text).interpreterLine()
		if found && (line.program == "" || strings.ContainsAny(line.program, " \t\n")) {
			t.Errorf("%q gave %+v", text, line)
		}
		head(text).machine()
	})
}

// A program of the system stays where it is; an agent that was put below /opt
// or /usr/local has its directory as the workspace, like any other.
func TestWhatIsInstalled(t *testing.T) {
	r := &request{host: newBench(t).host}
	for path, want := range map[string]bool{
		"/usr/bin/env": true, "/usr/share/app/run.py": true, "/usr/local/bin/tool": true, "/opt/tool": true,
		"/usr/local/agents/a.py": false, "/opt/agents/bot/agent.py": false, "/home/u/agent.py": false, "/usrlocal/x": false,
	} {
		if got := r.isInstalled(path); got != want {
			t.Errorf("%s: %v", path, got)
		}
	}
}
