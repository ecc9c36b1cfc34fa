package main

import (
	"debug/elf"
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
