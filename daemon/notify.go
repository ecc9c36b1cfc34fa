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

// Notifier tells systemd how cloved does, in the words of sd_notify(3). The
// zero value, without systemd, tells nobody.
type Notifier struct {
	path     string
	watchdog time.Duration
	patience time.Duration // with a systemd that is behind with its reading
}

// tellTime is how long a word may wait for room in systemd's queue
// (unix(7), max_dgram_qlen): a systemd that hangs must not keep cloved from its end.
const tellTime = 5 * time.Second

// NewNotifier reads what systemd says in the environment, and takes it out of
// there: what cloved starts is not for systemd to hear from.
func NewNotifier() Notifier {
	n := Notifier{path: os.Getenv("NOTIFY_SOCKET"), patience: tellTime}
	if us, err := strconv.ParseInt(os.Getenv("WATCHDOG_USEC"), 10, 64); err == nil && us > 0 {
		if pid := os.Getenv("WATCHDOG_PID"); pid == "" || pid == strconv.Itoa(os.Getpid()) {
			n.watchdog = time.Duration(us) * time.Microsecond
		}
	}
	for _, name := range []string{"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"} {
		os.Unsetenv(name)
	}
	return n
}

// The words of sd_notify(3).
const (
	notifyReady     = "READY=1"
	notifyReloading = "RELOADING=1"
	NotifyStopping  = "STOPPING=1"
	notifyWatchdog  = "WATCHDOG=1"
)

// Tell sends one state. A systemd that does not listen changes nothing.
func (n Notifier) Tell(state string) {
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

// Reloading says that the configuration is being read; Ready ends that. The
// clock's reading lets systemd tell an answer from one to an earlier reload.
func (n Notifier) Reloading() {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		return
	}
	n.Tell(fmt.Sprintf("%s\nMONOTONIC_USEC=%d", notifyReloading, now.Nano()/int64(time.Microsecond)))
}

// Ready says that cloved serves, and one line for `systemctl status`.
func (n Notifier) Ready(status string) {
	n.Tell(notifyReady + "\nSTATUS=" + strings.ReplaceAll(status, "\n", " "))
}

// Feed tells the watchdog twice in its time that cloved works, for as long as
// healthy says so in time, until ctx ends. Why it does not is told to failed.
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
				n.Tell(notifyWatchdog)
			} else if ctx.Err() == nil {
				failed(err)
			}
		}
	}
}

// ask gives healthy as long as the watchdog waits.
func (n Notifier) ask(ctx context.Context, healthy func(context.Context) error) error {
	limited, cancel := context.WithTimeout(ctx, n.watchdog/2)
	defer cancel()
	return healthy(limited)
}
