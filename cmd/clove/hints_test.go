package main

import (
	"fmt"
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

// A program of the host's that the agent does not see comes with the line that shows it; others keep their hint.
func TestAProgramOutsideIsShown(t *testing.T) {
	b := hintBench(t)
	program := b.file("home/.npm-global/bin/claude", elfHeader(2, 62), 0o755)
	b.setenv("PATH=" + b.host.Dir + "/home/.npm-global/bin")
	shown := b.host.Dir + "/home/.npm-global"
	b.backend.record = agent.Record{ExitCode: agent.ExitNotFound, Status: agent.StatusStartFailed, Error: &agent.Failure{Step: "look up", Message: "not found", Hint: "usual"}}
	for command, want := range map[string]string{
		program + " -p x": "the agent does not see " + shown + " of this host: clove run -v " + shown + ":" + shown + ":ro -- " + program + " -p x",
		"claude":          "the agent does not see " + shown + " of this host: clove run -v " + shown + ":" + shown + ":ro -- " + program,
		"nosuch":          "usual", "ls": "usual", b.host.Dir + "/agent.py": "usual",
	} {
		status, _, stderr := b.clove(append([]string{"run", "--"}, strings.Fields(command)...)...)
		if status != agent.ExitNotFound || !strings.Contains(stderr, "hint: "+want+"\n") {
			t.Errorf("%s: %d, %s", command, status, stderr)
		}
	}
	b.setenv("HOME=" + b.host.Dir + "/home")
	if _, _, stderr := b.clove("run", "--", "claude", "-p", "x"); !strings.Contains(stderr, "hint: claude is in your home, which is not inside: --home-dir .npm-global shows it\n") {
		t.Errorf("in the caller's home: %s", stderr)
	}
	if _, _, stderr := b.clove("run", "--rootfs", "folder", "--", program); !strings.Contains(stderr, "hint: usual\n") {
		t.Errorf("with a root of its own: %s", stderr)
	}
}

// An empty list is said on a terminal, and stays empty in a pipe and as JSON.
func TestAnEmptyListIsSaid(t *testing.T) {
	for line, want := range map[string]string{
		"ps": "there is no such run", "diff website": "the run changed no files", "check": "nothing was found", "gc": "nothing was found", "ps --json": "", "check --json": "",
	} {
		b := newBench(t)
		if strings.HasPrefix(line, "diff") {
			b = hintBench(t)
		}
		if _, stdout, stderr := b.clove(strings.Fields(line)...); strings.Contains(stdout+stderr, "clove:") {
			t.Errorf("%s into a pipe: %q, %q", line, stdout, stderr)
		}
		master, slave := pseudoTerminal(t)
		b.terminal = slave
		b.clove(strings.Fields(line)...)
		fmt.Fprintln(slave, "over")
		said := readUntil(t, master, "over")
		if want == "" && strings.Contains(said, "clove:") || !strings.Contains(said, want) {
			t.Errorf("%s on a terminal: %q", line, said)
		}
	}
}

// A start that takes long shows its step on a terminal, and clears the line.
func TestASlowStartShowsItsStep(t *testing.T) {
	b := newBench(t)
	master, slave := pseudoTerminal(t)
	b.terminal = slave
	b.backend.during = func() {
		b.backend.streams.Begins("rootfs")
		readUntil(t, master, "starting: rootfs, 1s")
		b.backend.streams.Begins("create")
		readUntil(t, master, "starting: create, 1s")
		b.backend.streams.Started(nil)
		readUntil(t, master, "\r\x1b[K")
	}
	if status, _, _ := b.clove("run", "--", "true"); status != 0 {
		t.Error(status)
	}
	b.backend.during = func() { b.backend.streams.Begins("rootfs"); b.backend.streams.Started(nil) }
	b.clove("run", "--", "true")
	fmt.Fprintln(slave, "over")
	if said := readUntil(t, master, "over"); strings.Contains(said, "starting") {
		t.Errorf("a fast start: %q", said)
	}
}

// readUntil reads a terminal until the text was there.
func readUntil(t *testing.T, from *os.File, text string) (read string) {
	t.Helper()
	for piece := make([]byte, 512); !strings.Contains(read, text); {
		n, err := from.Read(piece)
		if err != nil {
			t.Fatal(err)
		}
		read += string(piece[:n])
	}
	return read
}
