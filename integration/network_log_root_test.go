//go:build root

package integration

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestALogThatNobodyReadsHoldsNoDeadlineUp: the agent fills the log's pipe with refusals, and
// the run ends at its deadline all the same. No packet leaves: the address is private. The
// control: the pipe was full.
func TestALogThatNobodyReadsHoldsNoDeadlineUp(t *testing.T) {
	h := newHost(t)
	log := filepath.Join(t.TempDir(), "log")
	if err := unix.Mkfifo(log, 0o600); err != nil {
		t.Fatal(err)
	}
	reader, err := os.OpenFile(log, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	lent, err := reader.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	// A pipe of one page is full after a few refusals, however slowly Python starts.
	lent.Control(func(fd uintptr) { _, err = unix.FcntlInt(fd, unix.F_SETPIPE_SZ, os.Getpagesize()) })
	if err != nil {
		t.Fatal(err)
	}
	const script = `
import socket
while True:
    try:
        with socket.socket() as s:
            s.settimeout(1)
            s.connect(("10.1.2.3", 81))
    except OSError:
        pass`
	began := time.Now()
	r := h.clove("run", "--rm", fmt.Sprintf("--timeout=%ds", rounds(4, 12)), "--stop-timeout=0", "--net-rate=60000", "--network=public", "--dns=127.0.0.1:9",
		"--network-log="+log, "--", "python3", "-c", script)
	if r.code != 124 || time.Since(began) > patience() {
		t.Errorf("exit %d after %s\n%s", r.code, time.Since(began), r.stderr)
	}
	waiting := 0
	lent.Control(func(fd uintptr) { waiting, err = unix.IoctlGetInt(int(fd), unix.TIOCINQ) })
	if err != nil || waiting < os.Getpagesize()/2 {
		t.Errorf("control: %d bytes wait in the pipe, %v", waiting, err)
	}
}
