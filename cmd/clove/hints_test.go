package main

import (
	"os"
	"strings"
	"testing"

	"clove.run/clove/agent"
)

// hintBench is a host with interpreters and some programs, a script, a program in a home, and two runs.
func hintBench(t *testing.T) *bench {
	b := refusalBench(t)
	b.host.Base = []string{b.host.Dir + "/base"}
	for _, name := range []string{"python3", "node", "bash", "ls", "make", "git"} {
		b.file("base/bin/"+name, "", 0o755)
	}
	b.setenv("PATH=" + b.host.Dir + "/base/bin")
	b.file("agent.py", "print(1)\n", 0o644)
	b.file("server.js", "1\n", 0o644)
	t.Chdir(b.host.Dir) // where files and programs are looked for before there is a request
	t.Setenv("PATH", b.host.Dir+"/base/bin")
	b.backend.runs = []agent.Run{{Spec: agent.Spec{ID: "k3a9", Name: "website"}, State: agent.StateEnded}, {Spec: agent.Spec{ID: "x7qp", Name: "worker"}, State: agent.StateRunning}}
	return b
}

// TestHints: each wrong line of the table ends with the error and the hint beside it, and starts nothing.
func TestHints(t *testing.T) {
	const path = "testdata/hints.golden"
	table, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	var shown strings.Builder
	for text := range strings.Lines(string(table)) {
		line, is := strings.CutPrefix(strings.TrimSuffix(text, "\n"), "$ clove ")
		if !is {
			continue
		}
		count++
		t.Run(line, func(t *testing.T) {
			b := hintBench(t)
			status, stdout, stderr := b.clove(strings.Fields(line)...)
			if status == 0 || b.backend.spec != nil || stdout != "" {
				t.Errorf("status %d, run %v, stdout %q", status, b.backend.spec != nil, stdout)
			}
			shown.WriteString("$ clove " + line + "\n" + strings.ReplaceAll(stderr, b.host.Dir, "$PWD") + "\n")
		})
	}
	if count < 150 {
		t.Errorf("only %d lines", count)
	}
	golden(t, path, shown.String())
}
