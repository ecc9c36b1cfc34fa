package cgroups

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// freezePatience bounds the wait for a group to be frozen. Only a process in
// uninterruptible sleep takes longer than a few milliseconds.
const freezePatience = 2 * time.Second

// ErrNoFreezer means that none of the group's hierarchies can freeze.
var ErrNoFreezer = errors.New("no freezer is available to this group")

// Freeze stops every process of the group until Thaw. Unlike SIGSTOP, the processes cannot
// observe it. After an error the group may be partly frozen: call Thaw.
func (g *Group) Freeze() error {
	return g.freeze(freezePatience)
}

// freeze prefers the v1 freezer of a hybrid host to the v2 tree: libcontainer fails where
// it cannot join the former, but ignores an error with the latter.
func (g *Group) freeze(within time.Duration) error {
	if dir := g.paths["freezer"]; dir != "" {
		return freezeV1(dir, within)
	}
	return g.switchV2("1", within)
}

// Thaw resumes a frozen group. A group that is not frozen or does not exist is left alone.
// On v2 it waits until the processes run again. v1 has nothing to wait for: the write
// itself wakes them.
func (g *Group) Thaw() error {
	if dir := g.paths["freezer"]; dir != "" {
		return thawV1(dir)
	}
	if err := g.switchV2("0", freezePatience); err != nil && !isGone(err) {
		return err
	}
	return nil
}

// freezeV1 writes FROZEN until the state is FROZEN. Until then the state is FREEZING, and
// stays so for ever when a process forks at the wrong moment, so the request must be
// repeated. The v1 freezer has no event to wait for, hence the poll.
func freezeV1(dir string, within time.Duration) error {
	deadline := time.Now().Add(within)
	for pause := 100 * time.Microsecond; ; pause = min(2*pause, 10*time.Millisecond) {
		if err := write(dir, "freezer.state", "FROZEN"); err != nil {
			return fmt.Errorf("cannot freeze: %w", err)
		}
		state, err := readFields(dir, "freezer.state")
		if err != nil {
			return fmt.Errorf("cannot freeze: %w", err)
		}
		if len(state) == 1 && state[0] == "FROZEN" {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("cannot freeze %s within %s: state %s", dir, within, strings.Join(state, " "))
		}
		time.Sleep(pause)
	}
}

func thawV1(dir string) error {
	if err := write(dir, "freezer.state", "THAWED"); isGone(err) {
		return nil
	} else if err != nil {
		return fmt.Errorf("cannot thaw: %w", err)
	}
	// The write succeeds although the group stays frozen by an ancestor.
	if above, err := readFields(dir, "freezer.parent_freezing"); err == nil && len(above) == 1 && above[0] == "1" {
		return fmt.Errorf("cannot thaw %s: a cgroup above it is frozen", dir)
	}
	return nil
}

// switchV2 writes cgroup.freeze and waits until cgroup.events agrees.
func (g *Group) switchV2(value string, within time.Duration) error {
	dir := g.paths[unified]
	// The second case is a kernel before 5.2, which has no cgroup.freeze.
	if dir == "" || (exists(dir, "cgroup.procs") && !exists(dir, "cgroup.freeze")) {
		return ErrNoFreezer
	}
	if err := write(dir, "cgroup.freeze", value); err != nil {
		return fmt.Errorf("cannot freeze or thaw: %w", err)
	}
	return awaitEvent(dir, "frozen", value, time.Now().Add(within))
}

// awaitEvent waits until key in dir's cgroup.events has the value. kernfs wakes
// poll(2) with POLLPRI on a change since the last read of the same file.
func awaitEvent(dir, key, value string, deadline time.Time) error {
	file, err := os.Open(filepath.Join(dir, "cgroup.events"))
	if err != nil {
		return fmt.Errorf("cannot watch a cgroup: %w", err)
	}
	defer file.Close()
	// Two lines today, "populated 0" and "frozen 0". The rest is for later kernels.
	text := make([]byte, 256)
	for {
		// A read from offset 0 makes kernfs format the file afresh and arms the next poll.
		// A file that was read to its end would return nothing.
		n, err := file.ReadAt(text, 0)
		if n == 0 {
			return fmt.Errorf("cannot watch a cgroup: %w", err)
		}
		// The line breaks around it make this match a whole line, the first one included.
		if strings.Contains("\n"+string(text[:n]), "\n"+key+" "+value+"\n") {
			return nil
		}
		left := time.Until(deadline)
		if left <= 0 {
			return fmt.Errorf("cannot see %s %s in %s in time: it has %s", key, value, dir, strconv.Quote(string(text[:n])))
		}
		fds := []unix.PollFd{{Fd: int32(file.Fd()), Events: unix.POLLPRI}}
		// poll(2) is never restarted after a signal, and Go's scheduler sends SIGURG to
		// preempt threads.
		if _, err := unix.Poll(fds, millisecondsUp(left)); err != nil && err != unix.EINTR {
			return fmt.Errorf("cannot watch a cgroup: %w", err)
		}
	}
}

// millisecondsUp rounds up: poll(2) with 0 would spin until the deadline.
func millisecondsUp(d time.Duration) int {
	return int((d + time.Millisecond - 1) / time.Millisecond)
}
