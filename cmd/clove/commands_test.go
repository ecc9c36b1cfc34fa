package main

import (
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/rootfs"
	"clove.run/clove/runtime"
)

func someRuns() []agent.Run {
	created := time.Now().Add(-2 * time.Hour)
	return []agent.Run{
		{Spec: agent.Spec{ID: "aaaaaaaaaaaaaaaa", Name: "live", Command: []string{"sleep", "9"}}, State: agent.StateRunning, Created: created, Started: time.Now().Add(-90 * time.Second)},
		{Spec: agent.Spec{ID: "bbbbbbbbbbbbbbbb", Name: "done", Command: []string{"/usr/bin/sh", "-c", "\x1b[31mred\n" + strings.Repeat("x", 50)}}, State: agent.StateEnded, Created: created,
			Record: &agent.Record{Status: agent.StatusOOM, ExitCode: 137, WallMS: 1500}},
	}
}

func TestPs(t *testing.T) {
	b := newBench(t)
	b.backend.runs = someRuns()
	status, stdout, _ := b.clove("ps")
	want := "ID        NAME  STATE    EXIT  CREATED  RAN    COMMAND\n" +
		"aaaaaaaa  live  running        2h ago   1m30s  sleep 9\n"
	if status != 0 || stdout != want {
		t.Errorf("%d\n%s", status, stdout)
	}
	_, stdout, _ = b.clove("ps", "-a")
	if lines := strings.Split(stdout, "\n"); len(lines) != 4 || !strings.Contains(lines[2], "oom      137   2h ago   1.5s   sh -c \\x1b[31mred\\nxxx") || !strings.HasSuffix(lines[2], "…") {
		t.Errorf("\n%s", stdout)
	}
	var runs []agent.Run
	_, stdout, _ = b.clove("ps", "--all", "--json")
	if unmarshal(t, stdout, &runs); len(runs) != 2 || runs[1].Record.Status != agent.StatusOOM {
		t.Errorf("\n%s", stdout)
	}
	b.backend.runs[0].Spec.Schedule, b.backend.runs[0].Queue.Next = "@daily", time.Date(2030, 1, 2, 0, 0, 0, 0, time.Local)
	if _, stdout, _ = b.clove("ps"); !strings.Contains(stdout, "EXIT  NEXT        CREATED") || !strings.Contains(stdout, "2030-01-02  2h ago") {
		t.Errorf("\n%s", stdout)
	}
	b.backend.runs = nil
	if _, stdout, _ = b.clove("ps", "--json"); stdout != "[]\n" {
		t.Errorf("%q", stdout)
	}
}

func TestInspect(t *testing.T) {
	b := newBench(t)
	b.backend.runs = someRuns()
	var run agent.Run
	_, stdout, _ := b.clove("inspect", "done")
	if unmarshal(t, stdout, &run); run.Spec.Name != "done" || run.Record == nil {
		t.Errorf("\n%s", stdout)
	}
	if status, stdout, stderr := b.clove("inspect", "nobody"); status != exitFailed || stdout != "" || !strings.Contains(stderr, `there is no run "nobody"`) {
		t.Errorf("%d, %q, %q", status, stdout, stderr)
	}
}

func TestRmGoesOn(t *testing.T) {
	b := newBench(t)
	b.backend.runs = someRuns()
	status, stdout, stderr := b.clove("rm", "live", "nobody", "done")
	if status != exitFailed || stdout != "live\ndone\n" || strings.Join(b.backend.removed, " ") != "live done" || !strings.Contains(stderr, "nobody") {
		t.Errorf("%d, %q, %q, %q", status, stdout, stderr, b.backend.removed)
	}
	if status, _, _ := b.clove("rm", "done"); status != 0 {
		t.Errorf("%d", status)
	}
}

var someChanges = []rootfs.Change{
	{Kind: rootfs.Added, Path: "/workspace/new", Type: rootfs.TypeFile, Size: 3},
	{Kind: rootfs.Deleted, Path: "/workspace/a\nb"},
}

func TestDiff(t *testing.T) {
	b := newBench(t)
	b.backend.changes = someChanges
	if _, stdout, _ := b.clove("diff", "done"); stdout != "A /workspace/new\nD \"/workspace/a\\nb\"\n" {
		t.Errorf("%q", stdout)
	}
	var changes []rootfs.Change
	_, stdout, _ := b.clove("diff", "--json", "done")
	if unmarshal(t, stdout, &changes); len(changes) != 2 || changes[0].Size != 3 {
		t.Errorf("%q", stdout)
	}
	b.backend.changes = nil
	if _, stdout, _ := b.clove("diff", "done", "--json"); stdout != "[]\n" {
		t.Errorf("%q", stdout)
	}
}

func TestApplyWithoutATerminal(t *testing.T) {
	b := newBench(t)
	b.backend.changes = someChanges
	if status, _, stderr := b.clove("apply", "done"); status != exitFailed || !strings.Contains(stderr, "--yes") || b.backend.consent.Apply {
		t.Errorf("%d, %q, %+v", status, stderr, b.backend.consent)
	}
	if status, stdout, stderr := b.clove("apply", "--yes", "done"); status != 0 || strings.Count(stdout, "\n") != 2 || stderr != "" {
		t.Errorf("%d, %q, %q", status, stdout, stderr)
	}
	b.backend.changes = nil
	if status, stdout, stderr := b.clove("apply", "-y", "done"); status != 0 || stdout != "" || !strings.Contains(stderr, "nothing to apply") {
		t.Errorf("%d, %q, %q", status, stdout, stderr)
	}
}

func TestApplyShowsWhatWasRefused(t *testing.T) {
	b := newBench(t)
	b.backend.changes = []rootfs.Change{{Kind: rootfs.Added, Path: "/workspace/x", Refused: "it is a device"}}
	if status, stdout, stderr := b.clove("apply", "-y", "done"); status != exitFailed || stdout != "A /workspace/x (refused: it is a device)\n" || !strings.Contains(stderr, "refused") {
		t.Errorf("%d, %q, %q", status, stdout, stderr)
	}
	// After a failure in the middle, the changes before it are still printed.
	b.backend.failure = errors.New("no space left")
	if status, stdout, stderr := b.clove("apply", "-y", "done"); status != exitFailed || stdout == "" || !strings.Contains(stderr, "no space left") {
		t.Errorf("%d, %q, %q", status, stdout, stderr)
	}
}

func TestApplyAsksOnATerminal(t *testing.T) {
	for answer, want := range map[string]bool{"y\n": true, "YES\n": true, "\n": false, "n\n": false, "yeah\n": false} {
		b := newBench(t)
		b.backend.changes = someChanges
		master, slave := pseudoTerminal(t)
		b.in = slave
		if _, err := master.WriteString(answer); err != nil {
			t.Fatal(err)
		}
		status, stdout, stderr := b.clove("apply", "done")
		if b.backend.consent == nil || b.backend.consent.Apply != want || (status == 0) != want || (stdout != "") != want {
			t.Errorf("%q: %v, status %d, %q", answer, b.backend.consent, status, stdout)
		}
		if !strings.Contains(stderr, "A /workspace/new\n") || !strings.Contains(stderr, "apply 2 to the host? [y/N]") {
			t.Errorf("%q: %q", answer, stderr)
		}
	}
}

// For files that the host would execute, the question comes last and names each file.
func TestApplyAsksForEachThatExecutes(t *testing.T) {
	b := newBench(t)
	hook := rootfs.Change{Kind: rootfs.Added, Path: "/workspace/.git/hooks/pre-commit", Type: rootfs.TypeFile, ExecutedBy: "git"}
	tasks := rootfs.Change{Kind: rootfs.Changed, Path: "/workspace/.vscode/tasks.json", Type: rootfs.TypeFile, ExecutedBy: "VS Code"}
	agents := rootfs.Change{Kind: rootfs.Added, Path: "/workspace/AGENTS.md", Type: rootfs.TypeFile, Instructs: "agents"}
	folder := rootfs.Change{Kind: rootfs.Added, Path: "/workspace/.new", Type: rootfs.TypeDir, Unknown: "new"}
	inside := rootfs.Change{Kind: rootfs.Added, Path: "/workspace/.new/x", Type: rootfs.TypeFile, Unknown: "new"}
	b.backend.changes = append([]rootfs.Change{folder, inside, hook, tasks, agents}, someChanges...)
	master, slave := pseudoTerminal(t)
	b.in = slave
	if _, err := master.WriteString("y\nn\ny\nn\ny\n"); err != nil {
		t.Fatal(err)
	}
	_, _, stderr := b.clove("apply", "done")
	want := "apply 2 to the host? [y/N] Programs of the host execute these by themselves, for example when you work in that folder:\n" +
		"A /workspace/.git/hooks/pre-commit (git executes it): apply it? [y/N] C /workspace/.vscode/tasks.json (VS Code executes it): apply it? [y/N] " +
		"The next agent that works in the folder follows these:\nA /workspace/AGENTS.md (instructions for agents): apply it? [y/N] " +
		"A program of the host that clove does not know may execute these:\nA /workspace/.new (unknown: new)\nA /workspace/.new/x (unknown: new): apply these 2? [y/N] "
	if !strings.HasSuffix(stderr, want) {
		t.Errorf("%q", stderr)
	}
	if c := b.backend.consent; c == nil || !c.Apply || c.ExecutableConfig || c.Instructions || !slices.Equal(c.Each, []string{tasks.Path, folder.Path, inside.Path}) {
		t.Errorf("%+v", c)
	}
	for flags, want := range map[string]runtime.Consent{
		"-y": {Apply: true}, "-y --allow-executable-config": {Apply: true, ExecutableConfig: true}, "-y --allow-instructions": {Apply: true, Instructions: true},
		"-y --allow-instructions --allow-executable-config": {Apply: true, ExecutableConfig: true, Instructions: true},
	} {
		b.clove(append(append([]string{"apply"}, strings.Fields(flags)...), "done")...)
		if c := b.backend.consent; !reflect.DeepEqual(*c, want) {
			t.Errorf("%s: %+v", flags, c)
		}
	}
}

// Files that were left out are counted by class, with the flag that writes them.
func TestApplySaysWhatItLeftOut(t *testing.T) {
	b := newBench(t)
	b.backend.changes = []rootfs.Change{{Kind: rootfs.Added, Path: "/workspace/.envrc", ExecutedBy: "direnv", Refused: "x"}, {Kind: rootfs.Added, Path: "/workspace/AGENTS.md", Instructs: "agents", Refused: "x"},
		{Kind: rootfs.Added, Path: "/workspace/.new", Unknown: "new", Refused: "x"}, {Kind: rootfs.Added, Path: "/workspace/.new/x", Unknown: "new", Refused: "x"}}
	status, _, stderr := b.clove("apply", "-y", "done")
	for _, want := range []string{"left out: 1 for the host to execute; look at them, then give --allow-executable-config",
		"left out: 1 instructions for the next agent; look at them, then give --allow-instructions", "left out: 2 unknown; look at them, then give --allow-executable-config"} {
		if status != exitFailed || !strings.Contains(stderr, want) {
			t.Errorf("%d, no %q in %q", status, want, stderr)
		}
	}
}

// pseudoTerminal opens a pair of devices, pts(4).
func pseudoTerminal(t *testing.T) (master, slave *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { master.Close() })
	if err := unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	number, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	if slave, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { slave.Close() })
	return master, slave
}

func TestDoctor(t *testing.T) {
	b := newBench(t)
	status, stdout, _ := b.clove("doctor")
	want := "CHECK              STATUS   FOUND\n" +
		"overlay            ok       overlay\n" +
		"                            disk: copy on write\n" +
		"cpuset controller  missing  not mounted\n" +
		"                            --cpuset-cpus\n" +
		"                            remedy: mount it\n"
	if status != 0 || stdout != want || b.paths != 0 {
		t.Errorf("%d, opened %d times\n%s", status, b.paths, stdout)
	}
	var findings []runtime.Finding
	_, stdout, _ = b.clove("doctor", "--json")
	if unmarshal(t, stdout, &findings); len(findings) != 2 || findings[1].Remedy != "mount it" {
		t.Errorf("\n%s", stdout)
	}
}

func TestCheckAndGC(t *testing.T) {
	b := newBench(t)
	for _, command := range []string{"check", "gc"} {
		if status, stdout, stderr := b.clove(command); status != 0 || stdout != "" || stderr != "" {
			t.Errorf("%s: %d, %q, %q", command, status, stdout, stderr)
		}
		if _, stdout, _ := b.clove(command, "--json"); stdout != "[]\n" {
			t.Errorf("%s: %q", command, stdout)
		}
	}
	b.backend.problems = []runtime.Problem{{Kind: "cgroup", Subject: "abc", Message: "belongs to no live run"}}
	if status, stdout, _ := b.clove("check"); status != exitFailed || stdout != "cgroup  abc  belongs to no live run\n" {
		t.Errorf("%d, %q", status, stdout)
	}
	if status, stdout, _ := b.clove("gc"); status != 0 || stdout != "cgroup  abc  belongs to no live run\n" {
		t.Errorf("%d, %q", status, stdout)
	}
	b.backend.failure = errors.New("cannot remove the rest")
	if status, stdout, stderr := b.clove("gc"); status != exitFailed || stdout == "" || !strings.Contains(stderr, "the rest") {
		t.Errorf("%d, %q, %q", status, stdout, stderr)
	}
}

func TestVersionOpensNothing(t *testing.T) {
	b := newBench(t)
	if _, stdout, _ := b.clove("--version"); !strings.HasPrefix(stdout, "clove "+version+" (go") {
		t.Errorf("--version: %q", stdout)
	}
	if status, stdout, _ := b.clove("version"); status != 0 || !strings.HasPrefix(stdout, "clove "+version+" (go") || b.paths != 0 {
		t.Errorf("%d, %q, opened %d times", status, stdout, b.paths)
	}
}

func TestHelp(t *testing.T) {
	b := newBench(t)
	for _, line := range []string{"", "--help", "-h", "help"} {
		if status, stdout, _ := b.clove(strings.Fields(line)...); status != 0 || !strings.Contains(stdout, "clove run [flags] SCRIPT") {
			t.Errorf("%q: %d, %q", line, status, stdout)
		}
	}
	for _, c := range new(program).commands() {
		status, stdout, _ := b.clove("help", c.Name)
		if status != 0 || !strings.Contains(stdout, c.UsageText[:10]) {
			t.Errorf("%s: %d, %q", c.Name, status, stdout)
		}
	}
	if b.paths != 0 {
		t.Error("help opened the runtime")
	}
}

func TestNoCommandIsCalledLikeTheLaunchHook(t *testing.T) {
	for _, c := range new(program).commands() {
		if c.Name == runtime.ReexecArgument {
			t.Error("a subcommand would never run: libcontainer starts this binary with that word")
		}
	}
}

func TestCommandsRefuseWrongWords(t *testing.T) {
	for _, line := range []string{"ps x", "doctor x", "check x", "gc x", "version x", "inspect", "inspect a b", "rm", "diff", "apply -y", "completion", "completion tcsh", "completion bash zsh"} {
		b := newBench(t)
		status, stdout, stderr := b.clove(strings.Fields(line)...)
		if status != exitFailed || stdout != "" || !strings.HasPrefix(stderr, "clove: ") || !strings.Contains(stderr, "\nhint: ") || b.paths != 0 {
			t.Errorf("%q: %d, %q, %q", line, status, stdout, stderr)
		}
	}
}

// A script may have the name of a command, a flag or a help topic.
func TestAwkwardNames(t *testing.T) {
	for _, name := range []string{"help", "h", "run", "ps", "memory", "m", "init"} {
		if got := newBench(t).spec("--memory", "1G", "--", name, "help").Command; got[0] != name || got[1] != "help" {
			t.Errorf("%s: %q", name, got)
		}
		b := interpreterBench(t)
		b.file("work/"+name, "#!/usr/bin/env python3\n", 0o755)
		b.host.Dir += "/work"
		if got := b.spec(name, "--memory", "1G").Command; got[1] != "/workspace/"+name {
			t.Errorf("%s: %q", name, got)
		}
	}
}
