//go:build root

package runtime

import (
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"clove.run/clove/internal/nsthread"
	"clove.run/clove/internal/testhost"
)

// TestRootOfAContainerMayLackARight: a missing capability is reported before anything is made,
// with the remedy for Docker.
func TestRootOfAContainerMayLackARight(t *testing.T) {
	testhost.Root(t)
	if found, missing := findPrivilege(nil); found == "" {
		t.Fatalf("control: %s", missing)
	}
	for _, c := range needed {
		thread, err := nsthread.Start(0)
		if err != nil {
			t.Fatal(err)
		}
		err = thread.Do(func() error { // capabilities belong to a thread, capabilities(7)
			header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
			var data [2]unix.CapUserData
			if err := unix.Capget(&header, &data[0]); err != nil {
				return err
			}
			data[c.number/32].Effective &^= 1 << (c.number % 32)
			if err := unix.Capset(&header, &data[0]); err != nil {
				return err
			}
			if found, missing := findPrivilege(nil); found != "" || !strings.Contains(missing, "CAP_"+c.name+": "+c.why+"; ") {
				t.Errorf("without %s: %q, %q", c.name, found, missing)
			}
			return nil
		})
		thread.Close()
		if err != nil {
			t.Fatal(err)
		}
	}
}
