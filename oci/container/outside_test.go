package container

import (
	"errors"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// lastHooks acts only at the end.
type lastHooks struct{ ended func(*Container) error }

func (lastHooks) Created(*Container, []string) error { return nil }
func (lastHooks) Loaded(*Container) error            { return nil }
func (lastHooks) Starting(*Container) error          { return nil }
func (h lastHooks) Ended(c *Container) error         { return h.ended(c) }

// TestWhatWasMadeOutsideGoesFirst: while the directory exists, and after the last process has
// ended. If its removal fails, the container stays.
func TestWhatWasMadeOutsideGoesFirst(t *testing.T) {
	e := Engine{Root: t.TempDir()}
	process := child(t)
	kept(t, e, "one", process.Process.Pid)
	failure := errors.New("not now")
	calls := 0
	e.Hooks = lastHooks{func(c *Container) error {
		calls++
		if _, err := os.Stat(c.Directory()); err != nil || c.NetworkPath() != "" {
			t.Errorf("%q, network %q: %v", c.Directory(), c.NetworkPath(), err)
		}
		var status unix.WaitStatus
		if pid, err := unix.Wait4(process.Process.Pid, &status, unix.WNOHANG, nil); err == nil && pid == 0 {
			t.Error("its process lives")
		}
		return failure
	}}
	if err := load(t, e, "one").Delete(false); err == nil || calls != 0 {
		t.Errorf("of a running one: %v, %d calls", err, calls)
	}
	if err := load(t, e, "one").Delete(true); !errors.Is(err, failure) {
		t.Errorf("what failed: %v", err)
	}
	failure = nil
	if err := load(t, e, "one").Delete(true); err != nil || calls != 2 {
		t.Errorf("at last: %v, %d calls", err, calls)
	}
}
