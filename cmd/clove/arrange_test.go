package main

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"clove.run/clove/agent"
)

func arranged(t *testing.T, line string) (invocation, error) {
	t.Helper()
	return arrange(strings.Fields(line), new(program).commands())
}

func TestArrange(t *testing.T) {
	for _, c := range []struct{ line, want string }{
		{"", ""},
		{"--help", "--help=true"},
		{"help", "--help=true"},
		{"help run", "run --help=true --"},
		{"run agent.py", "run -- agent.py"},
		{"run agent.py --memory 256M", "run --memory=256M -- agent.py"},
		{"run --memory 256M agent.py", "run --memory=256M -- agent.py"},
		{"run --memory=256M agent.py", "run --memory=256M -- agent.py"},
		{"run -m 256M agent.py --rm", "run --memory=256M --rm=true -- agent.py"},
		{"run -m256M agent.py", "run --memory=256M -- agent.py"},
		{"run -m=256M agent.py", "run --memory=256M -- agent.py"},
		{"run -it agent.py", "run --interactive=true --tty=true -- agent.py"},
		{"run -itm 1G agent.py", "run --interactive=true --tty=true --memory=1G -- agent.py"},
		{"run --rm=false agent.py", "run --rm=false -- agent.py"},
		{"run -e A=B -eC=D agent.py", "run --env=A=B --env=C=D -- agent.py"},
		{"run --memory-swap -1 agent.py", "run --memory-swap=-1 -- agent.py"},
		{"run agent.py -- --memory 1G", "run -- agent.py -- --memory 1G"},
		{"run agent.py --rm -- -- x", "run --rm=true -- agent.py -- -- x"},
		{"run -- ls -l", "run -- -- ls -l"},
		{"run --cpus 2 -- ls --help", "run --cpus=2 -- -- ls --help"},
		{"run one two", "run -- one two"},
		{"run -", "run -- -"},
		{"run -h web agent.py", "run --hostname=web -- agent.py"},
		{"run -hweb agent.py", "run --hostname=web -- agent.py"},
		{"run -ith web agent.py", "run --interactive=true --tty=true --hostname=web -- agent.py"},
		{"run agent.py -h", "run --help=true --"},
		{"run -h --rm agent.py", "run --help=true --rm=true --"},
		{"ps -h web", "ps --help=true --"},
		{"run --net=none agent.py", "run --network=none -- agent.py"},
		{"--root /r run agent.py --run-dir /x", "--root=/r --run-dir=/x run -- agent.py"},
		{"rm -- -odd", "rm -- -odd"},
		{"ps -a", "ps --all=true --"},
	} {
		got, err := arranged(t, c.line)
		if err != nil || strings.Join(got.argv, " ") != c.want {
			t.Errorf("%q: %q, %v; want %q", c.line, strings.Join(got.argv, " "), err, c.want)
		}
	}
}

func TestArrangeRefuses(t *testing.T) {
	for _, c := range []struct{ line, want string }{
		{"run agent.py --bogus", "unknown flag --bogus"},
		{"run agent.py --bogus=1", "unknown flag --bogus"},
		{"run -ix agent.py", "unknown flag -ix"},
		{"run ---memory 1G", "unknown flag ---memory"},
		{"run --m 1G", "unknown flag --m"},
		{"run --=1", "unknown flag --"},
		{"run agent.py --memory", "--memory: a value is missing"},
		{"run agent.py -e -- x", "-e: a value is missing"},
		{"run --rm=maybe agent.py", `--rm: "maybe" is neither true nor false`},
		{"--bogus run", "unknown flag --bogus"},
		{"--memory 1G run", "unknown flag --memory"},
		{"-- ls", `there is no command before "--"`},
		{"frobnicate", `there is no command "frobnicate"`},
		{"ps --memory 1G", "unknown flag --memory"},
	} {
		if got, err := arranged(t, c.line); err == nil || err.Error() != c.want {
			t.Errorf("%q: %q, %v; want %q", c.line, got.argv, err, c.want)
		}
	}
}

// The agent's arguments stay unchanged, wherever clove's flags stand.
func TestArrangeKeepsTheAgentsArguments(t *testing.T) {
	commands := new(program).commands()
	flags := [][]string{{"--memory", "1G"}, {"-it"}, {"--rm"}, {"-eA=B"}, {"--env", "-A"}, {"--cpus=2"}, {"-v", "-x"}}
	rapid.Check(t, func(t *rapid.T) {
		before := rapid.SliceOfN(rapid.SampledFrom(flags), 0, 4).Draw(t, "before")
		after := rapid.SliceOfN(rapid.SampledFrom(flags), 0, 4).Draw(t, "after")
		args := rapid.SliceOf(rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"--", "--memory", "-it", "-", ""}))).Draw(t, "args")
		line := slices.Concat([]string{"run"}, slices.Concat(before...), []string{"agent.py"}, slices.Concat(after...), []string{"--"}, args)
		got, err := arrange(line, commands)
		if err != nil {
			t.Fatal(err)
		}
		tail := slices.Concat([]string{"--", "agent.py", "--"}, args)
		if len(got.argv) < len(tail) || !slices.Equal(got.argv[len(got.argv)-len(tail):], tail) {
			t.Fatalf("%q became %q", line, got.argv)
		}
		// The order of clove's own flags stays as well: if a flag is given twice, the last one
		// wins.
		first, err := arrange(slices.Concat([]string{"run"}, slices.Concat(before...), slices.Concat(after...), []string{"agent.py", "--"}, args), commands)
		if err != nil || !slices.Equal(first.argv, got.argv) {
			t.Fatalf("flags in front give %q, around the script %q", first.argv, got.argv)
		}
	})
}

func FuzzArrange(f *testing.F) {
	for _, seed := range []string{"run a.py --memory 1G -- x", "run -it -- ls", "ps -a", "help", "--root= run", "run -\xff", "run --", "run -e", "render a.py -- x"} {
		f.Add(seed)
	}
	commands := new(program).commands()
	f.Fuzz(func(t *testing.T, line string) {
		args := strings.Split(line, " ")
		got, err := arrange(args, commands)
		if err != nil {
			return
		}
		// A second arrangement changes nothing, except that run and render keep their second
		// "--".
		if got.command == "" || got.command == runName || got.command == renderName {
			return
		}
		again, err := arrange(got.argv, commands)
		if err != nil || !slices.Equal(again.argv, got.argv) {
			t.Errorf("%q, then %q, %v", got.argv, again.argv, err)
		}
	})
}

func TestWantsJSON(t *testing.T) {
	for line, want := range map[string]bool{"run --json a": true, "run a -- --json": false, "ps": false, "ps --json=true": true, "run --json=false": false} {
		if got := wantsJSON(strings.Fields(line)); got != want {
			t.Errorf("%q: %v", line, got)
		}
	}
}

// TestFlagsAreUTF8: the control is an argument, which keeps its bytes.
func TestFlagsAreUTF8(t *testing.T) {
	for _, line := range [][]string{{"run", "-e", "V=\xff", "--", "true"}, {"run", "--label=a=\xff", "--", "true"}, {"run", "-v", "/tmp/\xff:/x", "--", "true"}, {"exec", "-w", "/\xff", "one", "true"}} {
		if status, _, stderr := newBench(t).clove(line...); status != agent.ExitStartFailed || !strings.Contains(stderr, `\xff`) || !strings.Contains(stderr, "is not UTF-8") {
			t.Errorf("%q: %d, %s", line, status, stderr)
		}
	}
	if command := newBench(t).spec("--", "echo", "\xff").Command; len(command) != 2 || command[1] != "\xff" {
		t.Errorf("control: %q", command)
	}
}
