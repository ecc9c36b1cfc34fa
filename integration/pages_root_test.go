//go:build root

package integration

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"clove.run/clove/internal/doctest"
)

var (
	pageFile = regexp.MustCompile("(?s)`([a-z]+\\.(?:py|yaml))`[^`]*\n```[a-z]+\n(.*?)```") // a name, and what the file has
	oneID    = regexp.MustCompile(`\b[0-9a-f]{16}\b|\b[0-9]s ago`)
)

// The commands of these pages print what the page shows.
func TestTheMailPageIsTrue(t *testing.T) { isTrue(t, "docs/mail.md", 10, 35) }

func TestTheJobsPageIsTrue(t *testing.T) { isTrue(t, "docs/jobs.md", 6, 25) }

func TestTheStatePageIsTrue(t *testing.T) { isTrue(t, "docs/state.md", 1, 6) }

// isTrue runs the commands of a page, which must have some files and commands.
func isTrue(t *testing.T, page string, wantFiles, wantCommands int) {
	t.Helper()
	d := newCloved(t)
	root, dir := doctest.Root(t), userDir(t, nil)
	text, err := os.ReadFile(filepath.Join(root, page))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(root, "sdk"), filepath.Join(dir, "sdk")); err != nil {
		t.Fatal(err)
	}
	files := pageFile.FindAllStringSubmatch(string(text), -1)
	for _, file := range files {
		if err := os.WriteFile(filepath.Join(dir, file[1]), []byte(file[2]), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	variable, commands := "", 0
	for _, step := range strings.Split(string(text), "\n    $ ")[1:] {
		command, shown := shownBy(step)
		if strings.HasPrefix(command, "SDK=") {
			variable = strings.Replace(command, "$PWD", root, 1) + "\n"
			continue
		}
		commands++
		out, err := d.shellIn(dir, variable+"{ "+strings.ReplaceAll(command, "sudo ", "")+"\n} 2>errors")
		if got, want := oneID.ReplaceAllString(out, "ID"), oneID.ReplaceAllString(shown, "ID"); err != nil || strings.TrimRight(got, "\n") != strings.TrimRight(want, "\n") {
			problem, _ := os.ReadFile(filepath.Join(dir, "errors"))
			t.Fatalf("%s: %v\n%s%s\nthe page has\n%s", command, err, got, problem, want)
		}
	}
	if len(files) != wantFiles || commands < wantCommands {
		t.Errorf("the page has %d files and %d commands", len(files), commands)
	}
}

// shownBy is a command and what a page shows below it.
func shownBy(step string) (command, shown string) {
	command, rest, _ := strings.Cut(step, "\n")
	for line := range strings.Lines(rest) {
		printed, indented := strings.CutPrefix(line, "    ")
		if !indented {
			break
		}
		shown += printed
	}
	return command, shown
}

// shellIn runs a command line in a directory, in which clove is that of this host.
func (d *cloved) shellIn(dir, line string) (string, error) {
	d.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience())
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-c", line)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CLOVE_ROOT="+d.state, "CLOVE_RUN_DIR="+d.run, "PATH="+d.bin+":"+os.Getenv("PATH"))
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	start := cmd.Start
	if d.inside != nil {
		start = func() error { return d.inside(cmd.Start) }
	}
	err := start()
	if err == nil {
		err = cmd.Wait()
	}
	return out.String(), err
}
