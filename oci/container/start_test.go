package container

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/opencontainers/runc/libcontainer"
	"github.com/opencontainers/runtime-spec/specs-go"

	"clove.run/clove/internal/pidfd"
)

func TestAProcessThatCouldOnlyFailIsRefused(t *testing.T) {
	good := specs.Process{Cwd: "/", Args: []string{"true"}}
	if err := CheckProcess(&good); err != nil {
		t.Error(err)
	}
	for name, row := range map[string]struct {
		process *specs.Process
		want    string
	}{
		"none":         {nil, "process property must not be empty"},
		"no directory": {&specs.Process{Args: good.Args}, "Cwd property must not be empty"},
		"relative":     {&specs.Process{Args: good.Args, Cwd: "tmp"}, "Cwd must be an absolute path"},
		"no command":   {&specs.Process{Cwd: "/"}, "args must not be empty"},
		"other bytes":  {&specs.Process{Cwd: "/", Args: []string{"rm", "bad\xff"}}, `"bad\xff" is not UTF-8, which a container's process cannot have: rename what it names`},
	} {
		if err := CheckProcess(row.process); err == nil || err.Error() != row.want {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestATerminalNeedsSomebodyToHoldIt(t *testing.T) {
	for name, row := range map[string]struct {
		terminal bool
		start    Start
		refused  bool
	}{
		"pipes":                        {false, Start{}, false},
		"detached":                     {false, Start{Detach: true}, false},
		"detached terminal":            {true, Start{Detach: true, ConsoleSocket: "s"}, false},
		"detached, without a holder":   {true, Start{Detach: true}, true},
		"a socket without a terminal":  {false, Start{Detach: true, ConsoleSocket: "s"}, true},
		"a socket in the foreground":   {true, Start{ConsoleSocket: "s"}, true},
		"a terminal in the foreground": {true, Start{}, false},
	} {
		if err := checkTerminal(row.terminal, row.start); (err != nil) != row.refused {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestADescriptorThatIsNotThereIsNotPreserved(t *testing.T) {
	var process libcontainer.Process
	if err := preserve(&process, 0); err != nil || process.ExtraFiles != nil {
		t.Errorf("%v, %v", process.ExtraFiles, err)
	}
	// A number that is not open: an open descriptor of this process would be taken over, and
	// closed later.
	process.ExtraFiles = make([]*os.File, 1<<20)
	if err := preserve(&process, 1); err == nil || !strings.Contains(err.Error(), "unable to stat preserved-fd ") {
		t.Error(err)
	}
}

func TestTheConsoleSocketMustListen(t *testing.T) {
	if _, _, err := dial(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("a socket that is not there was dialled")
	}
}

func TestAPidFileIsWrittenWhole(t *testing.T) {
	if err := writePidFile("", &libcontainer.Process{}); err != nil {
		t.Errorf("without a file: %v", err)
	}
	path := filepath.Join(t.TempDir(), "pid")
	if err := writePidFile(path, &libcontainer.Process{}); err == nil {
		t.Error("a process that never started has a pid")
	}
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("the file: %v", err)
	}
}

// TestEveryEndIsReaped: run is the parent of the orphans that its container leaves, and reaps
// them.
func TestEveryEndIsReaped(t *testing.T) {
	for name, row := range map[string]struct {
		script string
		want   int
	}{"status": {"exit 7", 7}, "signal": {"kill -9 $$", 128 + 9}} {
		c := exec.Command("sh", "-c", row.script)
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		process, err := pidfd.Open(c.Process.Pid)
		if err != nil {
			t.Fatal(err)
		}
		if !process.WaitFor(killPatience) {
			t.Fatalf("%s: pid %s does not end", name, strconv.Itoa(c.Process.Pid))
		}
		process.Close()
		if status, ended := reap(c.Process.Pid); !ended || status != row.want {
			t.Errorf("%s: %d, %t", name, status, ended)
		}
	}
	if status, ended := reap(1); ended {
		t.Errorf("a child of another process is reaped: %d", status)
	}
}
