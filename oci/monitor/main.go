package monitor

import (
	"fmt"
	"io"
	"os"
	"os/signal"

	"golang.org/x/sys/unix"

	"clove.run/clove/internal/lasting"
)

// Argument is what clove-oci is called with to be a keeper; behind it comes the
// container's directory. Engines and people have no use for it.
const Argument = "keep"

// armed is a keeper's answer; another is why the container cannot be held. Its order
// is the container's lock, held.
const armed = "armed"

// Main is a keeper's whole life; args come behind Argument. It gives the exit
// status: 0 when the container is accounted for, 1 when it could not be held, which
// spawn has read from the descriptor then.
func Main(args []string) int {
	// What ends a session or a service is not meant for it: its container may live on.
	signal.Ignore(unix.SIGHUP, unix.SIGINT, unix.SIGTERM, unix.SIGQUIT, unix.SIGPIPE)
	unix.Umask(0o077)
	if len(args) == 0 {
		// For who tries how it hears of an end, it waits for that of this pipe, or its own; without
		// that descriptor it says the following.
		_, _ = io.Copy(io.Discard, os.NewFile(lasting.OrderFD, "trial"))
	}
	ready := os.NewFile(lasting.AnswerFD, "ready")
	if len(args) != 1 || ready == nil {
		fmt.Fprintln(os.Stderr, "clove-oci starts its keepers itself")
		return 1
	}
	// It is the last to be chosen when the host runs out of memory, where that may be asked for.
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("-999"), 0)
	k, err := begin(args[0])
	if err != nil {
		fmt.Fprint(ready, err)
		return 1
	}
	if _, err := fmt.Fprint(ready, armed); err != nil {
		return 1 // whoever waits for it is gone, and so is what it was about to start
	}
	ready.Close()
	k.keep()
	return 0
}

func begin(directory string) (*keeper, error) {
	k, err := arm(directory, os.NewFile(lasting.OrderFD, lockName))
	if err != nil {
		return nil, err
	}
	_, err = listen(directory, k.calls)
	return k, err
}
