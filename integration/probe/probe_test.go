package probe

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// run returns the program's results; a status other than 0 is a failure.
func run(t *testing.T, program string, args ...string) map[string]Result {
	t.Helper()
	output, err := exec.Command(program, args...).Output()
	if err != nil {
		t.Fatalf("%v: %v\n%s", args, err, output)
	}
	results, err := Parse(output)
	if err != nil {
		t.Fatal(err)
	}
	return results
}

// built is the program for all tests of this process; it lies in directory.
var (
	directory string
	built     = sync.OnceValues(func() (string, error) { return Path(directory) })
)

func TestMain(m *testing.M) {
	directory, _ = os.MkdirTemp("", "clove-probe-*") // if this fails, the build fails
	status := m.Run()
	os.RemoveAll(directory)
	os.Exit(status)
}

func build(t *testing.T) string {
	t.Helper()
	program, err := built()
	if err != nil {
		t.Fatal(err)
	}
	return program
}

// The table and the program have the same attacks.
func TestTableNamesEveryAttempt(t *testing.T) {
	program, scratch := build(t), t.TempDir()
	for _, c := range Commands("1", scratch) {
		if c.Args[0] != "fds" {
			sameNames(t, c, run(t, program, c.Args...))
		}
	}
}

func sameNames(t *testing.T, c Command, results map[string]Result) {
	t.Helper()
	named := slices.Clone(c.Passes)
	for _, a := range c.Attacks {
		named = append(named, a.Name)
	}
	for _, name := range named {
		if _, ok := results[name]; !ok {
			t.Errorf("%s: the program does not attempt it", name)
		}
	}
	for name := range results {
		if !slices.Contains(named, name) {
			t.Errorf("%s: no row of the table says what it must meet", name)
		}
	}
}

// Commands that use up a resource use as much as requested, and no more.
func TestAttacksReachTheirSize(t *testing.T) {
	program, dir := build(t), t.TempDir()
	tests := []struct {
		args   []string
		detail string
	}{
		{[]string{"forkbomb", "20"}, "20 of 20 processes"},
		{[]string{"zombies", "20"}, "20 of 20 dead processes left to others"},
		{[]string{"membomb", "malloc", "16"}, "16 of 16 MiB by malloc"},
		{[]string{"membomb", "fork", "16"}, "16 of 16 MiB by fork"},
		{[]string{"membomb", "memfd", "16"}, "16 of 16 MiB by memfd"},
		{[]string{"membomb", "shm", "16"}, "16 of 16 MiB by shm"},
		{[]string{"membomb", dir, "16"}, "16 of 16 MiB by " + dir},
		{[]string{"diskfill", dir, "2"}, "2097152 of 2097152 bytes"},
		{[]string{"inodefill", dir, "50"}, "50 of 50 files"},
		{[]string{"fdexhaust", "50"}, "50 of 50 descriptors"},
		{[]string{"signals", "50"}, "50 of 50 signals"},
		{[]string{"spin", "0"}, ""},
	}
	for _, test := range tests {
		r := run(t, program, test.args...)[test.args[0]]
		if !r.OK || !strings.HasPrefix(r.Detail, test.detail) && test.detail != "" {
			t.Errorf("%v: %+v", test.args, r)
		}
	}
	if made, err := os.ReadDir(dir); err != nil || len(made) != 51 {
		t.Errorf("%d files: %v", len(made), err)
	}
}

func TestAttacksMeetLimits(t *testing.T) {
	program := build(t)
	limited := func(limit string, args ...string) Result {
		t.Helper()
		script := append([]string{"-c", limit + `; exec "$0" "$@"`, program}, args...)
		return run(t, "/bin/sh", script...)[args[0]]
	}
	if r := limited("ulimit -n 20", "fdexhaust", "50"); r.OK || r.Errno != "EMFILE" {
		t.Errorf("descriptors: %+v", r)
	}
	if r := limited("ulimit -f 1; trap '' XFSZ", "diskfill", t.TempDir(), "2"); r.OK || r.Errno != "EFBIG" {
		t.Errorf("file size: %+v", r)
	}
	if r := limited("ulimit -v 100000", "membomb", "malloc", "200"); r.OK || r.Errno != "ENOMEM" {
		t.Errorf("memory: %+v", r)
	}
}

func TestFloodReportsElsewhere(t *testing.T) {
	var stderr strings.Builder
	cmd := exec.Command(build(t), "flood", "100000")
	cmd.Stderr = &stderr
	output, err := cmd.Output()
	if err != nil || len(output) != 100000 || !strings.Contains(stderr.String(), "100000 of 100000 bytes") {
		t.Errorf("%v, %d bytes: %s", err, len(output), &stderr)
	}
}

func TestInheritedDescriptorsAreSeen(t *testing.T) {
	program := build(t)
	// The test's own parent may have left others open.
	if r := run(t, program, "fds")["fds"]; strings.Contains(r.Detail, "3=") {
		t.Errorf("none was passed: %+v", r)
	}
	file, err := os.Open("/dev/null")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	cmd := exec.Command(program, "fds")
	cmd.ExtraFiles = []*os.File{file}
	output, err := cmd.Output()
	if err != nil || !strings.Contains(string(output), "3=/dev/null") {
		t.Errorf("%v: %s", err, output)
	}
}

func TestSwapExchangesNames(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "a"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/", filepath.Join(dir, "b")); err != nil {
		t.Fatal(err)
	}
	if r := run(t, build(t), "swap", dir, "a", "b", "1")["swap"]; !r.OK || strings.HasPrefix(r.Detail, "0 ") {
		t.Errorf("%+v", r)
	}
}

func TestWrongCommandLines(t *testing.T) {
	program := build(t)
	for _, args := range [][]string{
		{}, {"nonesuch"}, {"forkbomb"}, {"forkbomb", "x"}, {"forkbomb", "-1"}, {"forkbomb", "1000000"},
		{"unshare", "nonesuch"}, {"membomb", "malloc", "999999"}, {"kill", "1"},
	} {
		cmd := exec.Command(program, args...)
		if cmd.Run(); cmd.ProcessState.ExitCode() != 2 {
			t.Errorf("%q: status %d, want 2", args, cmd.ProcessState.ExitCode())
		}
	}
}

func TestProblemNeedsAControl(t *testing.T) {
	c := Command{Attacks: []Attack{{Name: "a", Held: []string{"EPERM"}}, {Name: "b", Held: []string{"ENOENT"}, MayLack: true}}, Passes: []string{"c"}}
	works := map[string]Result{"a": {OK: true}, "b": {OK: true}, "c": {OK: true}}
	holds := map[string]Result{"a": {Errno: "EPERM"}, "b": {Errno: "ENOENT"}, "c": {OK: true}}
	tests := []struct {
		name            string
		outside, inside map[string]Result
		problems        int
	}{
		{"as it should be", works, holds, 0},
		{"nothing is held", works, works, 2},
		{"nothing works outside", holds, holds, 1}, // b may be missing
		{"the program said nothing", nil, nil, 6},
	}
	for _, test := range tests {
		if got := c.Problem(test.outside, test.inside); len(got) != test.problems {
			t.Errorf("%s: %q", test.name, got)
		}
	}
}

// An attack by an instruction that the host does not execute is left out by name. Any other attack
// that ends so outside is judged.
func TestAttacksThatTheHostCannotMake(t *testing.T) {
	c := Command{Attacks: append(faulting(held("SIGSYS", "abi", "int80", "int80-socket")), held("SIGSYS", "abi", "x32")...)}
	fault := Result{Errno: "SIGSEGV"}
	faults := map[string]Result{"abi int80": fault, "abi int80-socket": fault, "abi x32": fault}
	if problems := c.Problem(faults, faults); len(problems) != 1 || !strings.HasPrefix(problems[0], "abi x32") {
		t.Errorf("%q", problems)
	}
	want := []string{
		"abi int80 is left out: it ends with SIGSEGV on this host without any sandbox",
		"abi int80-socket is left out: it ends with SIGSEGV on this host without any sandbox",
	}
	if lines := c.LeftOut(faults); !slices.Equal(lines, want) {
		t.Errorf("%q", lines)
	}
	works := map[string]Result{"abi int80": {OK: true}, "abi int80-socket": {OK: true}, "abi x32": {OK: true}}
	if problems, lines := c.Problem(works, faults), c.LeftOut(works); len(problems) != 3 || lines != nil {
		t.Errorf("where the instruction works: %q, %q", problems, lines)
	}
}

func TestParseRefusesOtherOutput(t *testing.T) {
	for _, text := range []string{`{"probe":"a"`, `{"probe":"a","more":1}`, "sh: not found"} {
		if _, err := Parse([]byte(text)); err == nil {
			t.Errorf("%q is taken for results", text)
		}
	}
}
