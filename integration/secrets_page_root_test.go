//go:build root

package integration

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"clove.run/clove/internal/doctest"
)

var variable = regexp.MustCompile(`\b[0-9]+s\b|[ \t]+`) // what differs in tables from run to run

// plainLines are the lines of an output, sorted: those of the agent and those of clove come in any order.
func plainLines(text string) string {
	lines := strings.Split(strings.TrimSpace(variable.ReplaceAllString(text, " ")), "\n")
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// The two minutes of docs/secrets.md print what the page shows, against a server of the test's own.
func TestTheTwoMinutesOfTheSecretsPage(t *testing.T) {
	d, n, _ := secretHost(t)
	n.zone.add("git.example.com. 60 IN A " + siteAddress)
	root := n.hasGit(t, "git.example.com/repos/", "/repos", "project.git")
	first := t.TempDir()
	if out, err := exec.Command("sh", "-c", "cd "+first+" && git init -q -b main && echo '# Notes' >notes.md && git add . && git -c user.name=a -c user.email=a@example.com commit -qm Begin && git push -q "+root+"/project.git main").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	page, err := os.ReadFile(filepath.Join(doctest.Root(t), "docs/secrets.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, scene, _ := strings.Cut(string(page), "## Two minutes")
	scene, _, _ = strings.Cut(scene, "\n## ")
	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, trust().pem, 0o600); err != nil {
		t.Fatal(err)
	}
	dir, commands := userDir(t, nil), 0
	for _, step := range strings.Split(scene, "\n    $ ")[1:] {
		command, shown := shownBy(step)
		if file, is := strings.CutPrefix(command, "cat "); is {
			if err := os.WriteFile(filepath.Join(dir, file), []byte(shown), 0o755); err != nil {
				t.Fatal(err)
			}
			continue
		}
		commands++
		line := strings.ReplaceAll(strings.ReplaceAll(command, "sudo clove secret set", "sudo clove secret set --ca "+ca), "sudo ", "")
		out, err := d.shellIn(dir, "TOKEN="+secretValue+"; "+line)
		if err != nil || plainLines(out) != plainLines(shown) || strings.Contains(out, secretValue) {
			t.Errorf("%s: %v\n%s\nthe page has\n%s", command, err, out, shown)
		}
	}
	if out, err := exec.Command("git", "-C", root+"/project.git", "log", "--format=%s", "main").CombinedOutput(); commands < 3 || string(out) != "Take a note\nBegin\n" {
		t.Errorf("%d commands, %v: %s", commands, err, out)
	}
}
