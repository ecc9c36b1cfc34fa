package main

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"

	"clove.run/clove/agent"
	"clove.run/clove/internal/doctest"
	"clove.run/clove/policies/settings"
	"clove.run/clove/runtime"
)

var (
	// quotedCommand matches clove at the beginning of a command, and its arguments.
	quotedCommand = regexp.MustCompile(`(?:^|\$ |; |sudo )(?:\S*bin/)?clove (.*)`)
	commandWord   = regexp.MustCompile(`^[a-z][a-z-]*$`)
	quotedFlag    = regexp.MustCompile(`^--?[a-z][a-z-]*`)
)

// flagNames returns all spellings of flags, with their dashes.
func flagNames(flags []cli.Flag) []string {
	var names []string
	for _, f := range flags {
		for _, name := range f.Names() {
			names = append(names, "--"+name, "-"+name)
		}
	}
	return names
}

// TestDocumentsNameRealCommandsAndFlags compares the commands in documents with the tables of
// the command line.
func TestDocumentsNameRealCommandsAndFlags(t *testing.T) {
	global := append(flagNames(globalFlags()), "--help", "-h")
	known := map[string][]string{}
	every := slices.Clone(global)
	for _, c := range (program{}).commands() {
		known[c.Name] = append(flagNames(c.Flags), global...)
		every = append(every, known[c.Name]...)
	}
	commands := 0
	for _, code := range doctest.Quoted(t) {
		words, flags := code.Text, every
		if match := quotedCommand.FindStringSubmatch(code.Text); match != nil {
			words = match[1]
			if name, _, _ := strings.Cut(words, " "); commandWord.MatchString(name) {
				commands++
				if flags = known[name]; flags == nil {
					t.Errorf("%s:%d: there is no command %q", code.File, code.Line, name)
				}
			}
		} else if !strings.HasPrefix(words, "--") && !(len(words) > 1 && words[0] == '-' && (len(words) == 2 || words[2] == ' ')) {
			continue // another program's
		}
		for _, bad := range unknownFlags(words, flags) {
			t.Errorf("%s:%d: %q has no flag %s", code.File, code.Line, code.Text, bad)
		}
	}
	if commands < 10 {
		t.Errorf("the documents quote %d commands of clove", commands)
	}
}

// unknownFlags checks the words before a lone --, a comment or the next command.
func unknownFlags(words string, known []string) []string {
	var bad []string
	for _, word := range strings.Fields(words) {
		if word == "--" || word == "#" || strings.HasSuffix(word, ";") || strings.ContainsAny(word, "|>") {
			break
		}
		name := quotedFlag.FindString(word)
		if name == "" || slices.Contains(known, name) || name == "-it" {
			continue
		}
		bad = append(bad, name)
	}
	return bad
}

// TestLimitsPageIsTrue: the page has a row for each limit, with the default that --help shows,
// and a row for each minimum.
func TestLimitsPageIsTrue(t *testing.T) {
	defaults, floors := map[string]string{}, map[string]string{}
	for _, row := range doctest.Rows(t, "docs/limits.md") {
		rows := defaults
		if len(row) == 2 {
			rows = floors
		}
		rows[strings.Trim(row[0], "`")] = strings.ReplaceAll(row[1], "`", "")
	}
	for _, f := range runFlags() {
		if f.(cli.CategorizableFlag).GetCategory() != settings.GroupLimits {
			continue
		}
		name, want := "--"+f.Names()[0], f.(cli.DocGenerationFlag).GetDefaultText()
		if defaults[name] != want {
			t.Errorf("docs/limits.md says that %s is %q by default, clove run --help %q", name, defaults[name], want)
		}
	}
	want := map[string]string{"--" + settings.Pids: strconv.Itoa(agent.PidsFloor), "flag": "the least",
		"--" + settings.Memory: size(agent.MemoryFloorBytes), "--" + settings.Disk: size(agent.DiskFloorBytes), "--" + settings.ShmSize: size(agent.SizeFloor)}
	if !maps.Equal(floors, want) {
		t.Errorf("docs/limits.md says that the least are %v, and they are %v", floors, want)
	}
}

// TestReadmeNamesRowsOfDoctor: each guarantee in README names the rows of doctor that show
// whether this host supports it.
func TestReadmeNamesRowsOfDoctor(t *testing.T) {
	known := map[string]bool{}
	for _, finding := range runtime.Doctor(runtime.DefaultPaths.Run) {
		known[finding.Name] = true
	}
	named := 0
	for _, row := range doctest.Rows(t, "README.md") {
		if len(row) != 3 || strings.HasPrefix(row[2], "`") {
			continue // another table, or the heading
		}
		for _, name := range strings.Split(row[2], ", ") {
			named++
			if !known[name] {
				t.Errorf("clove doctor has no row %q", name)
			}
		}
	}
	if named < len(known)/3 {
		t.Errorf("README.md names %d of doctor's %d rows", named, len(known))
	}
}
