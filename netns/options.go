package netns

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// optionBytes bounds what a socket inside may hold besides its buffers: group memberships,
// IP options, control messages. The kernel charges this memory to no cgroup. The bound is
// about the size of a socket itself, which is charged.
const optionBytes = 8192

// boundOptions lowers net.core.optmem_max in this thread's namespace. Before Linux 6.8 only
// the host's namespace has it, and in some containers it is read-only. Then the host's
// value applies, 20 KiB by default.
func boundOptions(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	now, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return fmt.Errorf("cannot read %s: %w", path, err)
	}
	if now > optionBytes {
		_ = os.WriteFile(path, []byte(strconv.Itoa(optionBytes)), 0)
	}
	return nil
}
