//go:build root

package cgroups

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"clove.run/clove/internal/nsthread"
	"clove.run/clove/internal/testhost"
)

// TestWhoCannotBeKilledIsNotLeftFrozen: without CAP_KILL, processes of other users cannot be
// signalled. If they stayed frozen, they would outlast even their pid namespace. On v2 the
// kernel kills by cgroup and needs no such capability.
func TestWhoCannotBeKilledIsNotLeftFrozen(t *testing.T) {
	g := realGroup(t)
	other := join(t, g, "exec setpriv --reuid 65534 --clear-groups sh -c 'echo up; exec sleep 1000'")
	other.begin(t)
	other.expectLine(t, "up")
	v2 := testhost.Cgroup() == testhost.CgroupV2
	if !v2 {
		g = g.onlyTrees(t, func(c string) bool { return c != unified })
	}
	thread, err := nsthread.Start(0)
	if err != nil {
		t.Fatal(err)
	}
	defer thread.Close()
	err = thread.Do(func() error { // capabilities belong to a thread, capabilities(7)
		header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
		var data [2]unix.CapUserData
		if err := unix.Capget(&header, &data[0]); err != nil {
			return err
		}
		data[0].Effective &^= 1 << unix.CAP_KILL
		if err := unix.Capset(&header, &data[0]); err != nil {
			return err
		}
		return g.Kill(t.Context())
	})
	if v2 {
		if err != nil {
			t.Error(err)
		}
		return
	}
	if !errors.Is(err, unix.EPERM) {
		t.Errorf("got %v", err)
	}
	state, err := os.ReadFile(filepath.Join(g.paths["freezer"], "freezer.state"))
	if err != nil || strings.TrimSpace(string(state)) != "THAWED" {
		t.Errorf("the freezer is %q (%v)", state, err)
	}
	mustKill(t, g) // control: with the capability it ends
}
