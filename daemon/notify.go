package daemon

import (
	"context"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Notifier reports cloved's state to systemd with sd_notify(3). The zero value,
// without systemd, sends nothing.
type Notifier struct {
	path     string
	watchdog time.Duration
	patience time.Duration // until systemd's queue has space; sendTime, and less in tests
}

// sendTime is how long a message may wait for space in systemd's queue
// (unix(7), max_dgram_qlen): a systemd that hangs must not keep cloved from ending.
const sendTime = 5 * time.Second

// NewNotifier reads the variables that systemd sets, and removes them from the
// environment: a supervisor that inherits them could report as if it were cloved.
func NewNotifier() Notifier {
	n := Notifier{path: os.Getenv("NOTIFY_SOCKET"), patience: sendTime}
	if us, err := strconv.ParseInt(os.Getenv("WATCHDOG_USEC"), 10, 64); err == nil && us > 0 {
		// sd_watchdog_enabled(3): the variables may be meant for another process, which
		// passed its environment on.
		if pid := os.Getenv("WATCHDOG_PID"); pid == "" || pid == strconv.Itoa(os.Getpid()) {
			n.watchdog = time.Duration(us) * time.Microsecond
		}
	}
	for _, name := range []string{"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"} {
		os.Unsetenv(name)
	}
	return n
}

// States of sd_notify(3).
const (
	notifyReady     = "READY=1"
	notifyReloading = "RELOADING=1"
	NotifyStopping  = "STOPPING=1"
	notifyWatchdog  = "WATCHDOG=1"
)

// Send sends one state. It has no error: cloved works the same without systemd.
func (n Notifier) Send(state string) {
	if n.path == "" {
		return
	}
	path := n.path
	if path[0] == '@' { // an abstract name
		path = "\x00" + path[1:]
	}
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		return
	}
	defer conn.Close()
	if conn.SetWriteDeadline(time.Now().Add(n.patience)) == nil {
		_, _ = conn.Write([]byte(state))
	}
}

// Reloading reports that the configuration is being read; Ready ends that. systemd
// compares the time with that of its request, to ignore the answer to an earlier one.
func (n Notifier) Reloading() {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		return
	}
	n.Send(fmt.Sprintf("%s\nMONOTONIC_USEC=%d", notifyReloading, now.Nano()/int64(time.Microsecond)))
}

// Ready reports that cloved serves, with a line for `systemctl status`.
func (n Notifier) Ready(status string) {
	n.Send(notifyReady + "\nSTATUS=" + strings.ReplaceAll(status, "\n", " "))
}

// Feed resets systemd's watchdog twice in its interval while healthy returns no error in
// time, until ctx ends. Other errors of healthy go to failed. Half of the interval is what
// sd_watchdog_enabled(3) advises.
func (n Notifier) Feed(ctx context.Context, healthy func(context.Context) error, failed func(error)) {
	if n.watchdog == 0 {
		return
	}
	ticker := time.NewTicker(n.watchdog / 2)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			if err := n.ask(ctx, healthy); err == nil {
				n.Send(notifyWatchdog)
			} else if ctx.Err() == nil {
				failed(err)
			}
		}
	}
}

// ask gives healthy half of the watchdog's interval: the answer must reach systemd in time.
func (n Notifier) ask(ctx context.Context, healthy func(context.Context) error) error {
	limited, cancel := context.WithTimeout(ctx, n.watchdog/2)
	defer cancel()
	return healthy(limited)
}
