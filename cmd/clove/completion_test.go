package main

import (
	"os/exec"
	"strings"
	"testing"
)

func script(t *testing.T, shell string) string {
	t.Helper()
	status, stdout, stderr := newBench(t).clove("completion", shell)
	if status != 0 || stderr != "" {
		t.Fatalf("%d, %s", status, stderr)
	}
	return stdout
}

// Every command and flag is in every script.
func TestCompletionIsWhole(t *testing.T) {
	for shell := range shells {
		text := script(t, shell)
		for _, c := range completions(new(program).commands()) {
			if !strings.Contains(text, c.name) {
				t.Errorf("%s: no %s", shell, c.name)
			}
			for _, f := range c.flags {
				if !strings.Contains(text, f.long) {
					t.Errorf("%s: no %s of %s", shell, f.long, c.name)
				}
			}
		}
	}
}

// Bash itself reads the script and completes with it.
func TestBashCompletes(t *testing.T) {
	text := script(t, "bash")
	for _, c := range []struct{ words, want string }{
		{"clove d", "drain diff doctor debug"},
		{"clove run --mem", "--memory --memory-swap"},
		{"clove run agent.py --cpu-t", "--cpu-time"},
		{"clove --root x run --rm", ""}, // "x" looks like the command; bash asks files then
		{"clove ps --", "--all --json --root --run-dir --socket"},
		{"clove run -- --mem", ""},
	} {
		words := strings.Fields(c.words)
		program := text + "\nCOMP_WORDS=(" + c.words + "); COMP_CWORD=" + string(rune('0'+len(words)-1)) + "; _clove; echo \"${COMPREPLY[*]}\""
		out, err := exec.Command("bash", "--norc", "-c", program).CombinedOutput()
		if got := strings.TrimSpace(string(out)); err != nil || got != c.want {
			t.Errorf("%q: %q, %v; want %q", c.words, got, err, c.want)
		}
	}
}

// A quote or a bracket in a help text must not end what it stands in.
func TestCompletionQuotes(t *testing.T) {
	odd := []completed{{name: "x", usage: `it's a [test]: \n`, flags: []completedFlag{{long: "f", usage: `don't [x]: y`, takesValue: true}}}}
	for shell, want := range map[string]string{
		"zsh":  `'*--f[don'\''t \[x\]\: y]:f:_files'`,
		"fish": `-d 'don\'t [x]: y'`,
	} {
		if got := shells[shell](odd); !strings.Contains(got, want) {
			t.Errorf("%s:\n%s", shell, got)
		}
	}
}
