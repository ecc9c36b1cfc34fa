package main

import (
	"strings"
	"testing"

	"github.com/urfave/cli/v2"
)

// TestEmptyValuesAreRefused: --timeout "$T" must not start a run without a deadline because T
// is not set.
func TestEmptyValuesAreRefused(t *testing.T) {
	b := newBench(t)
	tried := 0
	for _, c := range new(program).commands() {
		if c.Hidden {
			continue
		}
		for _, f := range c.Flags {
			switch f.(type) {
			case *cli.StringFlag, *cli.StringSliceFlag:
			default:
				continue
			}
			tried++
			flag := "--" + f.Names()[0]
			args := []string{c.Name, flag, "", "name"}
			if c.Name == runName {
				args = []string{c.Name, flag, "", "--", "true"}
			}
			status, stdout, stderr := b.clove(args...)
			if status == 0 || stdout != "" || !strings.Contains(stderr, flag+": its value is empty") || !strings.Contains(stderr, "hint: ") {
				t.Errorf("%q: %d, %s%s", args, status, stdout, stderr)
			}
		}
	}
	if tried < 40 {
		t.Errorf("control: only %d flags were tried", tried)
	}
}
