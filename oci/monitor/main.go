package monitor

import (
	"fmt"
	"io"
	"os"
	"os/signal"

	"golang.org/x/sys/unix"

	"clove.run/clove/internal/lasting"
)

// Argument makes clove-oci a monitor; the container's directory follows. It is for
// clove-oci alone, not for engines or people.
const Argument = "keep"

// armed is a monitor's answer when it is ready; any other text is why it cannot
// enforce the rules. Its order descriptor is the container's lock, held.
const armed = "armed"

// Main is a monitor's whole life; args follow Argument. It returns the exit status: 0
// when the record is written, 1 when the rules could not be enforced; spawn has read
// why from the descriptor then.
func Main(args []string) int {
	// Signals that end a session or a service must not end it: its container may live on.
	signal.Ignore(unix.SIGHUP, unix.SIGINT, unix.SIGTERM, unix.SIGQUIT, unix.SIGPIPE)
	unix.Umask(0o077)
	if len(args) == 0 {
		// This is the child that findSource starts to test a source of exit statuses: it
		// waits until it is killed or the pipe is closed. A person who calls `clove-oci
		// keep` has no such descriptor, and gets the message below.
		_, _ = io.Copy(io.Discard, os.NewFile(lasting.OrderFD, "trial"))
	}
	ready := os.NewFile(lasting.AnswerFD, "ready")
	if len(args) != 1 || ready == nil {
		fmt.Fprintln(os.Stderr, "clove-oci starts its monitors itself")
		return 1
	}
	// The OOM killer chooses it last. Without CAP_SYS_RESOURCE the kernel refuses that.
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("-999"), 0)
	m, err := begin(args[0])
	if err != nil {
		fmt.Fprint(ready, err)
		return 1
	}
	if _, err := fmt.Fprint(ready, armed); err != nil {
		return 1 // the starter is gone, and with it the container's start
	}
	ready.Close()
	m.run()
	return 0
}

// begin arms the monitor before it listens: a start that is answered must find the deadline
// enforceable.
func begin(directory string) (*monitor, error) {
	m, err := arm(directory, os.NewFile(lasting.OrderFD, lockName))
	if err != nil {
		return nil, err
	}
	_, err = listen(directory, m.calls)
	return m, err
}
