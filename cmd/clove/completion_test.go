package main

import (
	"os/exec"
	"strings"
	"testing"

	"clove.run/clove/agent"
)

func script(t *testing.T, shell string) string {
	t.Helper()
	status, stdout, stderr := newBench(t).clove("completion", shell)
	if status != 0 || stderr != "" {
		t.Fatalf("%d, %s", status, stderr)
	}
	return stdout
}

// Every completion script has every command and flag.
func TestCompletionIsWhole(t *testing.T) {
	for shell := range shells {
		text := script(t, shell)
		for _, c := range completions(table()) {
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

// Bash reads the script and completes with it.
func TestBashCompletes(t *testing.T) {
	text := script(t, "bash")
	for _, c := range []struct{ words, want string }{
		{"clove d", "down drain diff doctor debug"},
		{"clove run --mem", "--memory --memory-swap"},
		{"clove run agent.py --cpu-t", "--cpu-time"},
		{"clove --root x run --rm", ""}, // "x" looks like the command; bash then completes files
		{"clove ps --", "--all --quiet --filter --last --latest --tree --format --json --root --run-dir --socket"},
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

// Names of runs come from clove itself, limited to the runs that the command accepts.
func TestBashCompletesRuns(t *testing.T) {
	text := script(t, "bash") + `
clove() { [[ $1 == completion ]] && case $2 in live-runs) echo web; echo worker ;; all-runs) echo web; echo worker; echo old ;; esac; }
`
	for words, want := range map[string]string{"clove stop w": "web worker", "clove logs -f ''": "web worker old", "clove rm o": "old", "clove attach o": "", "clove run w": "",
		"clove grant g": "give", "clove grant list o": "old", "clove budget --json r": "raise report reset", "clove audit t": "tail", "clove audit verify w": ""} {
		program := text + "COMP_WORDS=(" + words + "); COMP_CWORD=$((${#COMP_WORDS[@]}-1)); _clove; echo \"${COMPREPLY[*]}\""
		out, err := exec.Command("bash", "--norc", "-c", program).CombinedOutput()
		if got := strings.TrimSpace(string(out)); err != nil || got != want {
			t.Errorf("%q: %q, %v; want %q", words, got, err, want)
		}
	}
	b := newBench(t)
	b.backend.runs = []agent.Run{{Spec: agent.Spec{Name: "live"}, State: agent.StateRunning}, {Spec: agent.Spec{Name: "over"}, State: agent.StateEnded}}
	if status, stdout, _ := b.clove("completion", "live-runs"); status != 0 || stdout != "live\n" {
		t.Errorf("%d, %q", status, stdout)
	}
	b.backend.runs = append(b.backend.runs, agent.Run{Owner: agent.Owner{UID: 1000}, Spec: agent.Spec{Name: "theirs"}, State: agent.StateEnded})
	want := "live\nover\n" + shown(agent.RunName{UID: 1000, Name: "theirs"}) + "\n"
	if status, stdout, _ := b.clove("completion", "all-runs"); status != 0 || stdout != want {
		t.Errorf("%d, %q", status, stdout)
	}
}

// A quote or a bracket in a help text must not end the string of the script that contains it.
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
