//go:build root

package rootfs

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// TestUserNamespaceIsNotTheHostRoots: what the agent uses up is counted for the
// owner of its namespace.
func TestUserNamespaceIsNotTheHostRoots(t *testing.T) {
	b := newBench(t)
	cfg := testConfig(b.dir)
	// Control: a namespace made without further ado is root's.
	plain, err := userNamespace(shiftMap(cfg.HostID))
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	if owner := namespaceOwner(t, plain); owner != 0 {
		t.Errorf("control: the owner is %d", owner)
	}
	namespace, err := os.Open(b.mount(cfg).UserNamespace())
	if err != nil {
		t.Fatal(err)
	}
	defer namespace.Close()
	if owner := namespaceOwner(t, namespace); owner != int(cfg.HostID)+ownerID {
		t.Errorf("the owner is %d, want %d", owner, int(cfg.HostID)+ownerID)
	}
}

func namespaceOwner(t *testing.T, namespace *os.File) int {
	t.Helper()
	owner, err := unix.IoctlGetUint32(int(namespace.Fd()), unix.NS_GET_OWNER_UID)
	if err != nil {
		t.Fatal(err)
	}
	return int(owner)
}

// TestOwnerIsGivenUpAgain: neither the thread nor the process stays changed.
func TestOwnerIsGivenUpAgain(t *testing.T) {
	b := newBench(t)
	before, err := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0)
	if err != nil || before != 1 {
		t.Fatalf("control: dumpable is %d, %v", before, err)
	}
	cfg := testConfig(b.dir)
	b.do(func() error {
		namespace, err := ownedNamespace(shiftMap(cfg.HostID), cfg.HostID+ownerID)
		if err != nil {
			return err
		}
		if uid := unix.Geteuid(); uid != 0 {
			t.Errorf("the thread is still user %d", uid)
		}
		return namespace.Close()
	})
	if after, err := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0); err != nil || after != before {
		t.Errorf("dumpable is %d, %v", after, err)
	}
}
