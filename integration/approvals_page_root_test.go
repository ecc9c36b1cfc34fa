//go:build root

package integration

import (
	"fmt"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// What differs from one run of the page's scene to the next.
var (
	pageID   = regexp.MustCompile(`\b[0-9a-f]{16}\b`)
	pageTime = regexp.MustCompile(`\d{4}-\d\d-\d\d \d\d:\d\d:\d\d`)
	pageAge  = regexp.MustCompile(`\b\d+s ago`)
)

// pageLine is a line of the scene without that.
func pageLine(line string) string {
	line = pageAge.ReplaceAllString(pageTime.ReplaceAllString(pageID.ReplaceAllString(line, "ID"), "TIME"), "AGE")
	return strings.Join(strings.Fields(line), " ")
}

// The scene of two terminals in docs/approvals.md is what its commands print.
func TestTheSceneOfApprovals(t *testing.T) {
	text, err := os.ReadFile("../docs/approvals.md")
	if err != nil {
		t.Fatal(err)
	}
	scene, _, found := strings.Cut(string(text), "\nThe program goes on")
	if !found {
		t.Fatal("the page has no scene")
	}
	var page, now []string // the lines of both terminals
	commands := 0
	_, d, n := asksIn(t, groupName, false)
	n.web.HandleFunc("api.example.com/", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "hello") })
	var first *running
	hello := ""
	for line := range strings.Lines(scene) {
		line, is := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "    ")
		if !is {
			continue
		}
		command, one := strings.CutPrefix(line, "1$ sudo clove run ")
		if one {
			commands++
			flags, program, _ := strings.Cut(command, " -- ")
			first = d.start(strings.Fields(flags), strings.Fields(program)...)
			continue
		}
		command, two := strings.CutPrefix(line, "2$ sudo clove ")
		switch {
		case two:
			commands++
			args := strings.Fields(command)
			asked := d.question(t)
			for i, arg := range args {
				if arg == "1bdf" {
					args[i] = asked.ID[:4]
				}
			}
			for shown := range strings.Lines(d.ok(args...)) {
				now = append(now, pageLine(shown))
			}
		case hello == "":
			hello = line // what the first terminal prints at the end
		default:
			page = append(page, pageLine(line))
		}
	}
	if commands != 4 || !slices.Equal(page, now) {
		t.Errorf("%d commands print\n%s\nand on the page is\n%s", commands, strings.Join(now, "\n"), strings.Join(page, "\n"))
	}
	if end := first.wait(); end.code != 0 || end.stdout != hello+"\n" {
		t.Errorf("%d %q %s", end.code, end.stdout, end.stderr)
	}
}
