//go:build root

package rootfs

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestUserNamespaceIsNotTheHostRoots: the kernel counts what the agent uses for the owner of
// its namespace.
func TestUserNamespaceIsNotTheHostRoots(t *testing.T) {
	b := newBench(t)
	cfg := testConfig(b.dir)
	// Control: a namespace that is made in the usual way belongs to root.
	holderMu.Lock()
	plain, err := userNamespace(shiftMap(cfg.HostID))
	holderMu.Unlock()
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

// TestOwnerIsGivenUpAgain: afterwards neither the thread nor the process has changed.
func TestOwnerIsGivenUpAgain(t *testing.T) {
	b := newBench(t)
	// A test before this one may have changed the ids of a thread, which clears it (prctl(2)).
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 1, 0, 0, 0); err != nil {
		t.Fatal(err)
	}
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

// TestHolderIsDeaf: the process that holds the namespace shares this program's memory, so no
// signal handler of Go's runtime may run in it, and it must leave nothing behind.
func TestHolderIsDeaf(t *testing.T) {
	newBench(t)
	holderMu.Lock()
	defer holderMu.Unlock()
	child, err := startHolder()
	if err != nil {
		t.Fatal(err)
	}
	var sent uint64
	for _, number := range []unix.Signal{unix.SIGINT, unix.SIGSEGV, unix.SIGTERM, unix.SIGURG, unix.SIGPROF, 32, 33, 64} {
		sent |= 1 << (number - 1)
		if err := unix.Kill(int(child), number); err != nil {
			t.Fatalf("signal %d: %v", int(number), err)
		}
	}
	status, err := os.ReadFile(child.proc("status"))
	if err != nil {
		t.Fatal(err)
	}
	// All signals but KILL and STOP are blocked. Control: the signals arrived, and stay
	// pending.
	for _, line := range []string{"SigBlk:\tfffffffffffbfeff\n", fmt.Sprintf("ShdPnd:\t%016x\n", sent)} {
		if !strings.Contains(string(status), line) {
			t.Errorf("no %q in\n%s", line, status)
		}
	}
	if err := child.end(); err != nil {
		t.Error(err)
	}
	if err := unix.Kill(int(child), 0); err != unix.ESRCH {
		t.Errorf("the holder is still there: %v", err)
	}
}

// TestNamespacesAreMadeAtOnce: concurrent goroutines use one holder's stack one after the
// other.
func TestNamespacesAreMadeAtOnce(t *testing.T) {
	b := newBench(t)
	cfg := testConfig(b.dir)
	made := make(chan error)
	const many = 50
	for i := range uint32(many) {
		go func() {
			namespace, err := ownedNamespace(ownerMap(cfg.HostID, 1000, 1000, 2000+i, 2000+i), cfg.HostID+ownerID)
			if err == nil {
				err = namespace.Close()
			}
			made <- err
		}()
	}
	for range many {
		if err := <-made; err != nil {
			t.Error(err)
		}
	}
}
