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

// signalsHeld is how many signals may wait: none is lost while one is dealt with.
const signalsHeld = 2048

// watcher passes signals to a process in the foreground.
type watcher struct {
	signals chan os.Signal
}

func newWatcher(o Start) *watcher {
	if o.Detach {
		return nil
	}
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

// catchIgnored catches what this program was started to ignore (nohup(1) does that):
// execve(2) keeps what is ignored, so the container's process would ignore it as
// well, and gives what is caught its default. Of what is ignored, Go's runtime
// leaves only these two so.
func catchIgnored() {
	for _, s := range []os.Signal{unix.SIGHUP, unix.SIGINT} {
		if signal.Ignored(s) {
			signal.Notify(make(chan os.Signal, 1), s) // and does nothing, as before
		}
	}
}

// follow passes every signal on until the process ends, and returns its status.
// resize is called when the window's size changes. Signals stay held after it, so that
// none interrupts the container's removal.
func (w *watcher) follow(process *libcontainer.Process, resize func()) (int, error) {
	pid, err := process.Pid()
	if err != nil {
		return -1, err
	}
	for s := range w.signals {
		switch s {
		case unix.SIGCHLD:
			if status, ended := reap(pid); ended {
				_, _ = process.Wait() // the status is known; the rest of it is libcontainer's own
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

// reap reaps every child that has ended, and returns the status of awaited.
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
