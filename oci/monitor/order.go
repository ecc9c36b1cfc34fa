package monitor

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/internal/atomicfile"
)

// The files in a container's directory, beside libcontainer's state.json.
const (
	orderName  = "keeper.json"
	lockName   = "keeper.lock"
	socketName = "keeper.sock"
	logName    = "keeper.log"
)

// orderVersion is the version of order on disk. A clove-oci of another version refuses the
// file: what it does not know could be a deadline.
const orderVersion = 1

// phase is how far a container is in its life.
type phase string

const (
	phaseCreated phase = "created" // its process waits for start
	phaseStarted phase = "started" // the deadline counts
	phaseExpired phase = "expired" // the monitor has begun to kill it
	phaseEnded   phase = "ended"   // its first process has ended, and its record is written
)

// order is what a monitor has to do, all of it on disk: if a monitor is killed, the
// next one goes on from here.
type order struct {
	Version  int               `json:"version"`
	Phase    phase             `json:"phase"`
	ID       string            `json:"id"`
	Pid      int               `json:"pid"`       // of the first process, on the host
	PidStart uint64            `json:"pid_start"` // its start time, proc_pid_stat(5), because pids are reused
	Cgroups  map[string]string `json:"cgroups"`   // controller to directory
	Command  []string          `json:"command"`
	Limits   agent.Limits      `json:"limits"`
	Record   string            `json:"record,omitempty"` // file that the record goes to
	Source   source            `json:"source,omitempty"` // of the status in it
	Socket   string            `json:"socket,omitempty"` // of the cloved that the record is also reported to

	// From phaseStarted on. The first is for people, the others are
	// CLOCK_BOOTTIME's, which no process can set and which counts a suspended host's time.
	Started   time.Time     `json:"started,omitzero"`
	StartedAt time.Duration `json:"started_boot_ns,omitempty"`
	Deadline  time.Duration `json:"deadline_boot_ns,omitempty"` // 0: none
}

// start notes the start. A second one does not move the deadline: the first may
// have failed, or been killed, before the process executed. libcontainer refuses the
// second of two concurrent starts.
func (o *order) start(at time.Time, boot time.Duration) error {
	switch o.Phase {
	case phaseCreated:
	case phaseStarted:
		return nil
	default:
		return fmt.Errorf("the container is %s already", o.Phase)
	}
	o.Phase, o.Started, o.StartedAt = phaseStarted, at, boot
	if o.Limits.WallClock > 0 {
		o.Deadline = boot + o.Limits.WallClock
	}
	return nil
}

// save replaces what is on disk, all of it or nothing.
func (o *order) save(directory string) error {
	text, err := json.Marshal(o)
	if err != nil {
		return err
	}
	return atomicfile.Write(filepath.Join(directory, orderName), 0o600, text)
}

// readOrder reads the order of the container's monitor; found is false if there is
// none.
func readOrder(directory string) (o order, found bool, err error) {
	text, err := os.ReadFile(filepath.Join(directory, orderName))
	if errors.Is(err, fs.ErrNotExist) {
		return o, false, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &o)
	}
	if err == nil && o.Version != orderVersion {
		err = fmt.Errorf("its version is %d, this clove-oci knows %d", o.Version, orderVersion)
	}
	if err != nil {
		return o, true, fmt.Errorf("cannot read what the container's monitor holds: %w", err)
	}
	return o, true, nil
}

// lock creates and takes the lock that proves that a monitor is alive: the kernel
// drops it however the process ends. It is nil if another process has it.
func lock(directory string) (*os.File, error) { return openLock(directory, os.O_CREATE) }

// lockAgain takes the lock of a container that has had a monitor. It creates no file
// (fs.ErrNotExist): a concurrent delete needs an empty directory to remove.
func lockAgain(directory string) (*os.File, error) { return openLock(directory, 0) }

// openLock does not wait: a lock that is held means that a monitor lives, which is the
// answer.
func openLock(directory string, create int) (*os.File, error) {
	file, err := os.OpenFile(filepath.Join(directory, lockName), os.O_RDWR|create, 0o600)
	if err != nil {
		return nil, err
	}
	err = unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if err == nil {
		return file, nil
	}
	file.Close()
	if err == unix.EWOULDBLOCK {
		return nil, nil
	}
	return nil, fmt.Errorf("cannot lock %s: %w", file.Name(), err)
}
