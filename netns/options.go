package netns

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// optionBytes is how much a socket inside may hold besides its buffers: group
// memberships, IP options, control messages. The kernel charges that to nobody.
// It is about what a socket itself takes, which is charged.
const optionBytes = 8192

// boundOptions lowers net.core.optmem_max in this thread's namespace. It is the
// host's alone before Linux 6.8, and read-only in some containers: then the
// host's own bound holds, which is 20 KiB there unless it was changed.
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
