package container

import (
	"os"
	"os/signal"

	"github.com/opencontainers/runc/libcontainer"
	"github.com/opencontainers/runc/libcontainer/system"
	"github.com/opencontainers/runc/libcontainer/utils"
	"github.com/sirupsen/logrus"
	"golang.org/x/sys/unix"
)

// signalsHeld is how many signals can be pending, as in runc. os/signal drops what does not
// fit, and a dropped signal would never reach the container.
const signalsHeld = 2048

// watcher passes signals to a process in the foreground.
type watcher struct {
	signals chan os.Signal
}

// newWatcher returns nil for a detached process, which no process follows.
func newWatcher(o Start) *watcher {
	if o.Detach {
		return nil
	}
	// Orphans of the container become this program's children, so their exit is reaped
	// here. That needs to be set before the first process exists.
	if o.Subreaper {
		if err := system.SetSubreaper(1); err != nil {
			logrus.Warn(err)
		}
	}
	w := &watcher{signals: make(chan os.Signal, signalsHeld)}
	// Each kind of signal costs some switches between threads. SIGCHLD, which reports
	// the end, is held from now on, the others while the container is made.
	signal.Notify(w.signals, unix.SIGCHLD)
	go signal.Notify(w.signals)
	return w
}

// catchIgnored stops ignoring signals that this program was started to ignore, as nohup(1)
// does for its command. execve(2) keeps ignored signals ignored, so the container's process
// would ignore them too; caught signals get their default action there. SIGHUP and SIGINT
// are the only two whose ignoring Go's runtime preserves.
func catchIgnored() {
	for _, s := range []os.Signal{unix.SIGHUP, unix.SIGINT} {
		if signal.Ignored(s) {
			// The channel is never read: the signal has no effect here, as before.
			signal.Notify(make(chan os.Signal, 1), s)
		}
	}
}

// follow passes every signal on until the process ends, and returns its status. resize is
// called when the size of the caller's window changes. After it returns, signals stay
// caught, so that none interrupts the container's removal.
func (w *watcher) follow(process *libcontainer.Process, resize func()) (int, error) {
	pid, err := process.Pid()
	if err != nil {
		return -1, err
	}
	for s := range w.signals {
		switch s {
		case unix.SIGCHLD:
			if status, ended := reap(pid); ended {
				_, _ = process.Wait() // the status is known; this lets libcontainer finish
				return status, nil
			}
		case unix.SIGWINCH:
			resize()
		case unix.SIGURG: // Go's scheduler sends it to itself
		default:
			if err := process.Signal(s); err != nil {
				logrus.Error(err)
			}
		}
	}
	return -1, nil
}

// reap reaps every child that has ended, orphans of the container included, and returns the
// status of awaited. It loops, because one SIGCHLD may stand for several children.
func reap(awaited int) (status int, ended bool) {
	for {
		var how unix.WaitStatus
		pid, err := unix.Wait4(-1, &how, unix.WNOHANG, nil)
		if err == unix.EINTR {
			continue
		}
		if err != nil || pid <= 0 {
			return status, ended
		}
		if pid == awaited {
			status, ended = utils.ExitStatus(how), true
		}
	}
}
