package container

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestAContainerThatIsNotThereIsToldApart(t *testing.T) {
	e := Engine{Root: t.TempDir()}
	for id, want := range map[string]string{
		"one": "container does not exist", "": "container id cannot be empty",
		"..": "invalid container ID format", "a/b": "invalid container ID format", "a b": "invalid container ID format",
	} {
		_, err := e.Load(id)
		if err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", id, err, want)
		}
		if errors.Is(err, ErrNotExist) != (id == "one") {
			t.Errorf("%q: %v is ErrNotExist", id, err)
		}
	}
}

// fifo makes a container look as if it waited for its start.
func fifo(t *testing.T, e Engine, id string) {
	t.Helper()
	if err := unix.Mkfifo(filepath.Join(e.Root, id, "exec.fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestStartRefusesWhatDoesNotWait(t *testing.T) {
	e := Engine{Root: t.TempDir()}
	kept(t, e, "running", child(t).Process.Pid)
	kept(t, e, "stopped", 1<<22+1)
	for id, want := range map[string]string{
		"running": "cannot start an already running container", "stopped": "cannot start a container that has stopped",
	} {
		if err := load(t, e, id).Exec(""); err == nil || err.Error() != want {
			t.Errorf("%s: %v", id, err)
		}
	}
}

func TestASignalReachesTheProcess(t *testing.T) {
	e := Engine{Root: t.TempDir()}
	process := child(t)
	kept(t, e, "one", process.Process.Pid)
	c := load(t, e, "one")
	if err := c.Signal(unix.SIGTERM); err != nil {
		t.Fatal(err)
	}
	_ = process.Wait()
	if how := process.ProcessState.String(); how != "signal: terminated" {
		t.Errorf("the process ended by %q", how)
	}
	if err := c.Signal(unix.SIGTERM); !errors.Is(err, ErrNotRunning) || err.Error() != "container not running" {
		t.Errorf("afterwards: %v", err)
	}
}

// TestAnotherProcessOfTheSameNumberIsLeftAlone: pids are used again, so the start time is
// stored with the pid.
func TestAnotherProcessOfTheSameNumberIsLeftAlone(t *testing.T) {
	e := Engine{Root: t.TempDir()}
	other := child(t)
	kept(t, e, "one", other.Process.Pid)
	path := filepath.Join(e.Root, "one", "state.json")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	changed := strings.Replace(string(text), `"init_process_start":`, `"init_process_start":1`, 1)
	if err := os.WriteFile(path, []byte(changed), 0o600); err != nil {
		t.Fatal(err)
	}
	c := load(t, e, "one")
	if err := c.Signal(unix.SIGKILL); !errors.Is(err, ErrNotRunning) {
		t.Errorf("the signal: %v", err)
	}
	if err := c.Delete(true); err != nil {
		t.Errorf("the removal: %v", err)
	}
	if err := other.Process.Signal(unix.Signal(0)); err != nil {
		t.Errorf("the other process is gone: %v", err)
	}
}

func TestDeleteTakesOnlyWhatHasEnded(t *testing.T) {
	for name, row := range map[string]struct {
		waits, lives, force bool
		want                string
	}{
		"stopped":             {},
		"stopped, with force": {force: true},
		"created":             {waits: true, lives: true},
		"running":             {lives: true, want: "cannot delete container one that is not stopped: running"},
		"running, with force": {lives: true, force: true},
	} {
		t.Run(name, func(t *testing.T) {
			e := Engine{Root: t.TempDir()}
			process := child(t)
			kept(t, e, "one", process.Process.Pid)
			if row.waits {
				fifo(t, e, "one")
			}
			if !row.lives {
				_ = process.Process.Kill()
				_ = process.Wait()
			}
			err := load(t, e, "one").Delete(row.force)
			_, left := os.Stat(filepath.Join(e.Root, "one"))
			if row.want != "" {
				if err == nil || err.Error() != row.want || left != nil {
					t.Errorf("%v, directory %v", err, left)
				}
				return
			}
			if err != nil || !os.IsNotExist(left) {
				t.Errorf("%v, directory %v", err, left)
			}
			_ = process.Wait() // it has been killed, or the test ends here
			if how := process.ProcessState.String(); how != "signal: killed" {
				t.Errorf("the process ended by %q", how)
			}
		})
	}
}

func TestAnUnfinishedCreateIsRemoved(t *testing.T) {
	e := Engine{Root: t.TempDir()}
	if err := os.MkdirAll(filepath.Join(e.Root, "one", "notify"), 0o711); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Load("one"); !errors.Is(err, ErrNotExist) {
		t.Fatal(err)
	}
	if err := e.RemoveUnfinished("one"); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(e.Root, "one")); !os.IsNotExist(err) {
		t.Error(err)
	}
}
