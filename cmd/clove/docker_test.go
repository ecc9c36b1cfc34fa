package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"clove.run/clove/agent"
	"clove.run/clove/internal/doctest"
)

// TestDockersWordsHaveAnAnswer: a docker command or flag that clove lacks is refused, with
// what to use instead. clove itself has none of that name.
func TestDockersWordsHaveAnAnswer(t *testing.T) {
	commands := program{}.commands()
	known := map[string]flagTable{}
	for _, c := range commands {
		known[c.Name] = flagTable{}
		known[c.Name].add(c.Flags, false)
	}
	for command, flags := range dockerFlags {
		for flag, instead := range flags {
			if _, has := known[command][flag]; has {
				t.Errorf("clove %s has %s", command, flag)
			}
			b := newBench(t)
			status, stdout, stderr := b.clove(command, flag, "x", "y")
			if status == 0 || stdout != "" || !strings.Contains(stderr, flag+": clove "+command+" has no such flag\nhint: "+instead+"\n") {
				t.Errorf("%s %s: %d, %q, %q", command, flag, status, stdout, stderr)
			}
		}
	}
	for word, instead := range dockerCommands {
		status, stdout, stderr := newBench(t).clove(word, "x")
		if status != exitFailed || stdout != "" || known[word] != nil || !strings.HasSuffix(stderr, "\nhint: "+instead+"\n") {
			t.Errorf("%s: %d, %q, %q", word, status, stdout, stderr)
		}
	}
}

// TestDockersImageIsNoScript: docker users type the name of an image first.
func TestDockersImageIsNoScript(t *testing.T) {
	for line, instead := range map[string]string{
		"run -it --rm ubuntu:22.04 bash": `there is no script "ubuntu:22.04", and there are no images; a program of the host's runs as clove run -- bash`,
		"run python:3 python -c 1":       `there is no script "python:3", and there are no images; a program of the host's runs as clove run -- python -c 1`,
		"run agent.py first":             "write arguments of the agent after --: clove run agent.py -- first",
	} {
		b := newBench(t)
		b.file("agent.py", "", 0o600)
		status, _, stderr := b.clove(strings.Fields(line)...)
		if status != agent.ExitStartFailed || !strings.HasSuffix(stderr, "\nhint: "+instead+"\n") {
			t.Errorf("%s: %d, %q", line, status, stderr)
		}
	}
}

// TestDockersWordsAreDocumented: each has one row in docs/from-docker.md, which has no others.
func TestDockersWordsAreDocumented(t *testing.T) {
	const document = "docs/from-docker.md"
	var want, got []string
	for command, flags := range dockerFlags {
		for flag, instead := range flags {
			want = append(want, fmt.Sprintf("`docker %s %s` | %s", command, flag, instead))
		}
	}
	for word, instead := range dockerCommands {
		want = append(want, fmt.Sprintf("`docker %s` | %s", word, instead))
	}
	table := map[string]flagTable{}
	for _, c := range (program{}).commands() {
		table[c.Name] = flagTable{}
		table[c.Name].add(c.Flags, false)
	}
	held := 0
	for _, row := range doctest.Rows(t, document) {
		words := strings.Fields(strings.Trim(row[0], "`"))
		if len(words) < 2 || words[0] != "docker" {
			continue // a heading
		}
		if line := strings.Join(row, " | "); slices.Contains(want, line) {
			got = append(got, line)
			continue
		}
		held++
		for _, flag := range words[2:] {
			if _, has := table[words[1]][flag]; strings.HasPrefix(flag, "-") && !has {
				t.Errorf("%s: clove %s has no %s, and the row is not the hint that it gives", document, words[1], flag)
			}
		}
		if table[words[1]] == nil {
			t.Errorf("%s: clove has no %s", document, words[1])
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		missing := slices.DeleteFunc(slices.Clone(want), func(line string) bool { return slices.Contains(got, line) })
		t.Errorf("%s lacks these rows:\n| %s |", document, strings.Join(missing, " |\n| "))
	}
	for _, flag := range dockerMeant {
		if !slices.ContainsFunc(doctest.Rows(t, document), func(row []string) bool {
			return slices.Contains(strings.Fields(strings.Trim(row[0], "`")), flag)
		}) {
			t.Errorf("%s does not say what %s means", document, flag)
		}
	}
	if held < len(dockerMeant) {
		t.Errorf("control: %d rows say what clove has; commands %q", held, slices.Sorted(maps.Keys(table)))
	}
}

// dockerMeant are the flags that do not mean exactly what docker's do.
var dockerMeant = []string{"--add-host", "--cap-drop", "--cidfile", "--entrypoint", "--format", "--init", "--last", "--mount", "--security-opt", "--stop-signal", "--user", "--volume"}
