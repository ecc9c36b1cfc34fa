//go:build root

package integration

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestKernelCryptoIsRefused: no policy lets an agent make a socket of AF_ALG, through which
// CVE-2026-31431 wrote to files that the agent may only read. The control is the same call outside,
// which is not refused with EPERM, whether the kernel has the module or not.
func TestKernelCryptoIsRefused(t *testing.T) {
	h := newHost(t)
	fd, err := unix.Socket(unix.AF_ALG, unix.SOCK_SEQPACKET, 0)
	if err == nil {
		unix.Close(fd)
	}
	if errors.Is(err, unix.EPERM) {
		t.Fatalf("control: %v", err)
	}
	script := fmt.Sprintf(`
import socket
for family in %d, socket.AF_UNIX:
    try: socket.socket(family, socket.SOCK_SEQPACKET); print("made")
    except OSError as e: print(e.errno)
`, unix.AF_ALG)
	for _, policy := range []string{"unrestricted", "standard", "sandboxed"} {
		for _, user := range []string{"root", "agent"} {
			r := h.clove("run", "--rm", "--policy", policy, "--user", user, "--", "python3", "-c", script)
			if want := fmt.Sprintf("%d\nmade\n", int(unix.EPERM)); r.code != 0 || r.stdout != want {
				t.Errorf("%s, %s: %d, %q, want %q: %s", policy, user, r.code, r.stdout, want, strings.TrimSpace(r.stderr))
			}
		}
	}
}
