package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// fakeRuntime writes a runtime whose container is a process of the host that waits for start.
// It records its calls in the file that it returns.
func fakeRuntime(t *testing.T, process string) (runtime, calls string) {
	t.Helper()
	dir := t.TempDir()
	runtime, calls = filepath.Join(dir, "runtime"), filepath.Join(dir, "calls")
	script(t, dir, "runtime", `cd `+dir+`; echo "$*" >>calls
		case $3 in
		create) mkfifo go; (read -r _ <go; `+process+`) >/dev/null 2>&1 & echo -n $! >"$7" ;;
		start) echo >go ;;
		esac`)
	return runtime, calls
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestALifeIsCalledAsAShimCallsIt(t *testing.T) {
	runtime, calls := fakeRuntime(t, "true")
	stages, err := leadLife(runtime, "/root-of-it", "/bundle", "one")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(read(t, calls)), "\n")
	if len(lines) != 3 || !strings.HasPrefix(lines[0], "--root /root-of-it create --bundle /bundle --pid-file ") ||
		lines[1] != "--root /root-of-it start one" || lines[2] != "--root /root-of-it delete one" {
		t.Errorf("called with %q", lines)
	}
	var names []string
	var sum float64
	for _, s := range stages {
		names = append(names, s.What)
		sum += s.MS
	}
	if want := []string{whatCreate, whatStart, whatDelete, whatLife}; !slices.Equal(names, want) {
		t.Fatalf("stages %q, not %q", names, want)
	}
	if whole := stages[3].MS; whole <= 0 || sum-2*whole > 1e-6 {
		t.Errorf("%v ms is not the sum of %+v", whole, stages)
	}
}

// A container that fails is not measured, and is removed.
func TestALifeThatFailsLeavesNothing(t *testing.T) {
	runtime, calls := fakeRuntime(t, "exit 3")
	if _, err := leadLife(runtime, "/root-of-it", "/bundle", "one"); err == nil || !strings.Contains(err.Error(), "0x300") {
		t.Errorf("%v", err)
	}
	if text := read(t, calls); !strings.HasSuffix(text, "--root /root-of-it delete --force one\n") {
		t.Errorf("called with %q", text)
	}
	if err := lifeMain([]string{"runtime"}); err == nil {
		t.Error("too few arguments were taken")
	}
}

func TestOnlyTheDeadlineIsDifferent(t *testing.T) {
	b := &bench{scratch: "/scratch", self: "/bench", clove: "/bin/clove", runc: "/cache/runc"}
	for i, want := range [][]string{
		{"/bench", "life", "/cache/runc", "/scratch/runc", "/scratch/bundle-true", "one"},
		{"/bench", "life", "/bin/clove-oci", "/scratch/clove-oci", "/scratch/bundle-true", "one"},
		{"/bench", "life", "/bin/clove-oci", "/scratch/clove-oci", "/scratch/bundle-true-timed", "one"},
	} {
		if got := lives[i].command(b, "one", programTrue...); !slices.Equal(got, want) {
			t.Errorf("%s: %q, not %q", lives[i].name, got, want)
		}
	}
}

func TestNoLivesWithoutARuntime(t *testing.T) {
	table := newTable("commands")
	table.Absent[reference] = "it is not there"
	if err := (&bench{}).measureLives(table); err != nil || len(table.Figures) != 0 {
		t.Errorf("%v, %+v", err, table.Figures)
	}
}
