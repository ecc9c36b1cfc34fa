package runtime

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// procOf returns a /proc that is made of plain files.
func procOf(t *testing.T, files map[string]string) string {
	t.Helper()
	proc := t.TempDir()
	for name, text := range files {
		path := filepath.Join(proc, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return proc
}

// stat is a line of proc_pid_stat(5).
func stat(pid, name, state, parent string) string {
	return pid + " (" + name + ") " + state + " " + parent + " 1 1 0 -1 0 0 0 0 0 250 50 0 0 20 0 3 0 100 0 7" + strings.Repeat(" 0", 52-24) + "\n"
}

func TestProcessesAreReadFromInside(t *testing.T) {
	t.Parallel()
	proc := procOf(t, map[string]string{
		"40/stat": stat("40", "clove-init", "S", "9"), "40/status": "NSpid:\t40\t1\nUid:\t1065533\t1\t1\t1\n", "40/cmdline": "x\x00",
		// A process name that looks like the end of the line.
		"50/stat": stat("50", ") R 1 (", "S", "40"), "50/status": "Uid:\t1001000\t1\t1\t1\nNSpid:\t50\t7\n", "50/cmdline": "a\x00b c\x00\xff\x00",
		"60/stat": stat("60", "kernel\xff", "Z", "50"), "60/status": "NSpid:\t60\t9\nUid:\t1000000\n", "60/cmdline": "",
		// A process that enters the sandbox, and one that ended before it could be read.
		"70/stat": stat("70", "runc", "S", "9"), "70/status": "NSpid:\t70\nUid:\t0\n", "70/cmdline": "",
		"80/stat": stat("80", "gone", "S", "9"),
	})
	all, err := processes(proc, []int{80, 70, 60, 50, 40}, 1_000_000)
	if err != nil || len(all) != 3 {
		t.Fatalf("%+v, %v", all, err)
	}
	for i, want := range []struct {
		pid, parent int
		uid         uint32
		command     []string
	}{{1, 0, 65533, []string{"[clove-init]"}}, {7, 1, 1000, []string{"a", "b c", "\uFFFD"}}, {9, 7, 0, []string{"[kernel\uFFFD]"}}} {
		p := all[i]
		if p.PID != want.pid || p.ParentPID != want.parent || p.UID != want.uid || !slices.Equal(p.Command, want.command) {
			t.Errorf("got %+v, want %+v", p, want)
		}
		if p.CPUMS != 3000 || p.Threads != 3 || p.RSSBytes != 7*int64(os.Getpagesize()) {
			t.Errorf("%+v", p)
		}
	}
}

func TestAStatThatMakesNoSense(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "1 ) (", "1 (a) S 1 2", "1 (a"} {
		proc := procOf(t, map[string]string{"1/stat": text, "1/status": "NSpid:\t1\t1\n", "1/cmdline": ""})
		if _, err := processes(proc, []int{1}, 0); err == nil {
			t.Errorf("%q was read", text)
		}
	}
}

// TestALongCommandLineIsCut keeps an agent from making clove hold megabytes
// for each of its processes.
func TestALongCommandLineIsCut(t *testing.T) {
	t.Parallel()
	proc := procOf(t, map[string]string{"1/stat": stat("1", "a", "S", "0"), "1/status": "NSpid:\t1\t1\n", "1/cmdline": strings.Repeat("x", 1<<20)})
	all, err := processes(proc, []int{1}, 0)
	if err != nil || len(all[0].Command[0]) != commandMax {
		t.Errorf("%v", err)
	}
}
