package main

import (
	"bufio"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/urfave/cli/v2"
	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/methods"
	"clove.run/clove/runtime"
)

// fits reports each line that is wider than the given number of columns.
func fits(t *testing.T, what, text string, width int) {
	t.Helper()
	if text == "" {
		t.Errorf("%s writes nothing", what)
	}
	for line := range strings.Lines(text) {
		if line = strings.TrimSuffix(line, "\n"); utf8.RuneCountInString(line) > width || strings.TrimRight(line, " ") != line {
			t.Errorf("%s: %d letters: %q", what, utf8.RuneCountInString(line), line)
		}
	}
}

// TestEveryHelpFits: in a usual terminal; and it has every flag.
func TestEveryHelpFits(t *testing.T) {
	for _, args := range [][]string{nil, {"--help"}, {"-h"}} {
		_, stdout, _ := newBench(t).clove(args...)
		fits(t, "clove "+strings.Join(args, " "), stdout, 80)
		for _, f := range globalFlags() {
			if !strings.Contains(stdout, "   --"+f.Names()[0]) {
				t.Errorf("clove %s does not show --%s", args, f.Names()[0])
			}
		}
		for _, c := range new(program).commands() {
			if !c.Hidden && !strings.Contains(stdout, "\n   "+c.Name+" ") {
				t.Errorf("clove %s does not show %s", args, c.Name)
			}
		}
	}
	for _, c := range new(program).commands() {
		if c.Hidden || len(c.Subcommands) > 0 {
			continue
		}
		_, stdout, _ := newBench(t).clove(c.Name, "--help")
		fits(t, c.Name+" --help", stdout, 80)
		for _, f := range c.Flags {
			hidden := !f.(cli.VisibleFlag).IsVisible()
			if strings.Contains(stdout, "   --"+f.Names()[0]) == hidden {
				t.Errorf("%s --help does not show --%s", c.Name, f.Names()[0])
			}
		}
	}
}

// Tables fit into a terminal, with the longest names and times too.
func TestTablesFit(t *testing.T) {
	b := newBench(t)
	long := agent.Run{Spec: agent.Spec{ID: "aaaaaaaaaaaaaaaa", Name: strings.Repeat("n", 63), Command: []string{"sh", "-c", strings.Repeat("x", 300)}},
		State: agent.StateEnded, Created: time.Now().Add(-1000 * 24 * time.Hour), Record: &agent.Record{Status: agent.StatusOutputLimit, ExitCode: 137, WallMS: 359_999_999}}
	long.Spec.Schedule, long.Queue.Next = "@daily", time.Now().Add(time.Hour)
	b.backend.runs = []agent.Run{long}
	_, stdout, _ := b.clove("ps", "-a")
	fits(t, "ps -a", stdout, 80)
	if !strings.Contains(stdout, "output-limit") || !strings.Contains(stdout, "1000d ago") || !strings.Contains(stdout, "…") {
		t.Errorf("%s", stdout)
	}
	f := b.cloved()
	f.answer(methods.RunProcesses.Name, api.ProcessesResult{Processes: []agent.Process{{PID: 65535, ParentPID: 65535, UID: 65533, State: "S", Threads: 512, CPUMS: 359_999_999,
		RSSBytes: 1 << 33, Started: time.Now(), Command: []string{strings.Repeat("x", 300)}}}})
	_, stdout, _ = b.clove("top", "one")
	fits(t, "top", stdout, 80)
	_, stdout, _ = b.clove("doctor")
	fits(t, "doctor", stdout, 80)
}

// Doctor's findings on this machine fit into a terminal of another width.
func TestFindingsFitTheTerminal(t *testing.T) {
	master, slave := pseudoTerminal(t)
	const columns = 60
	if err := unix.IoctlSetWinsize(int(master.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: columns}); err != nil {
		t.Fatal(err)
	}
	text := make(chan string)
	go func() {
		var all strings.Builder
		for lines := bufio.NewScanner(master); lines.Scan() && lines.Text() != "end"; {
			all.WriteString(lines.Text() + "\n")
		}
		text <- all.String()
	}()
	err := printFindings(&screen{out: slave}, runtime.Doctor(runtime.DefaultPaths.Run))
	if err == nil {
		_, err = slave.WriteString("end\n")
	}
	if err != nil {
		t.Fatal(err)
	}
	shown := <-text
	fits(t, "doctor", shown, columns)
	if !strings.Contains(shown, "STATUS") {
		t.Errorf("%q", shown)
	}
}
