package main

import (
	"strings"
	"testing"
)

// TestHelpBesideWords: help is shown although other arguments are there.
func TestHelpBesideWords(t *testing.T) {
	for line, command := range map[string]string{
		"node install --help": "node", "node --help install": "node", "help node install": "node",
		"render kubernetes --help": "render", "render --help kubernetes agent.py": "render",
		"inspect -h NAME": "inspect", "inspect NAME --help": "inspect", "exec -h NAME -- ls": "exec", "exec NAME --help": "",
		"run agent.py -h": "run", "run -h": "run", "run -h --rm -- true": "run", "run agent.py --help -- -x": "run", "run --help -- true": "run", "rm a b -h": "rm",
	} {
		b := newBench(t)
		status, stdout, stderr := b.clove(strings.Fields(line)...)
		if command == "" {
			if status == 0 || !strings.Contains(stderr, "cloved does not run") {
				t.Errorf("%q, whose flag is the command's: %d, %q", line, status, stderr)
			}
			continue
		}
		if status != 0 || !strings.HasPrefix(stdout, "NAME:\n   clove "+command+" - ") || stderr != "" || b.paths != 0 {
			t.Errorf("%q: %d, %.60q, %q", line, status, stdout, stderr)
		}
	}
}
