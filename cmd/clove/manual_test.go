package main

import (
	"strings"
	"testing"

	"github.com/urfave/cli/v2"
)

// The manual page has every command and flag that help shows.
func TestManualIsWhole(t *testing.T) {
	status, page, stderr := newBench(t).clove("manual")
	if status != 0 || stderr != "" {
		t.Fatalf("%d, %s", status, stderr)
	}
	for _, c := range new(program).commands() {
		if strings.Contains(page, ".SS clove "+escapeRoff(c.Name)+"\n") == c.Hidden {
			t.Errorf("%s: hidden is %t", c.Name, c.Hidden)
		}
		if c.Hidden {
			continue
		}
		for _, f := range c.Flags {
			if !strings.Contains(page, escapeRoff("--"+f.Names()[0])) {
				t.Errorf("no --%s of %s", f.Names()[0], c.Name)
			}
		}
	}
	if status, _, _ := newBench(t).clove("manual", "more"); status == 0 {
		t.Error("it takes an argument")
	}
}

// A line that begins with a dot, or a backslash, must not be taken for a request of roff.
func TestManualEscapes(t *testing.T) {
	var r roff
	r.flags([]cli.Flag{
		&cli.StringFlag{Name: "long", Aliases: []string{"l"}, Usage: ".first\n'second \\n a-b", DefaultText: "none"},
		&cli.BoolFlag{Name: "secret", Hidden: true},
	})
	want := ".TP\n\\fB\\-\\-long, \\-l VALUE\\fR\n\\&.first\n\\&'second \\en a\\-b (default: none)\n"
	if r.String() != want {
		t.Errorf("got  %q\nwant %q", r.String(), want)
	}
}
