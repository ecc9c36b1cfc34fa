package cgroups

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// OOMKills returns how many processes of the group the OOM killer has killed, sub-cgroups
// included. It wraps fs.ErrNotExist where the group or its memory controller does not
// exist.
func (g *Group) OOMKills() (int64, error) {
	if dir, ok := g.paths["memory"]; ok {
		return oomKillsV1(dir)
	}
	return oomKillsIn(g.paths[unified], "memory.events")
}

// oomKillsV1 sums over the tree, because v1 counts each directory separately.
func oomKillsV1(top string) (total int64, err error) {
	if total, err = oomKillsIn(top, "memory.oom_control"); err != nil {
		return 0, err
	}
	children, err := subgroups(top)
	if err != nil {
		return 0, err
	}
	for _, child := range children {
		n, err := oomKillsV1(child)
		if err != nil && !isGone(err) { // an absent sub-cgroup took its count with it
			return 0, err
		}
		total += n
	}
	return total, nil
}

// oomKillsIn reads the oom_kill line of one file; v1 and v2 call the line the same.
func oomKillsIn(dir, name string) (int64, error) {
	var f files
	n := at(f.keys(dir, name), "oom_kill")
	if n == nil && f.err == nil {
		f.err = fmt.Errorf("cannot count memory kills: no oom_kill in %s: %w", filepath.Join(dir, name), os.ErrNotExist)
	}
	if f.err != nil {
		return 0, f.err
	}
	return *n, nil
}

// WatchOOM returns a channel that receives a value each time OOMKills has grown, and at
// once if it is above 0 already, so that no kill before the watch is missed. Several kills
// in a row may make one value. The channel is never closed, so a receive always means a
// kill. The watch holds one descriptor and one goroutine, which end with ctx, and on v1
// also with the group. A group without a memory controller gets a channel that never
// receives.
func (g *Group) WatchOOM(ctx context.Context) (<-chan struct{}, error) {
	arm := armV2
	dir, isV1 := g.paths["memory"]
	if isV1 {
		arm = armV1
	} else {
		dir = g.paths[unified]
	}
	events, err := arm(dir)
	// The group is there, its memory controller is not.
	if isGone(err) && !isV1 && exists(dir, "cgroup.procs") {
		return make(chan struct{}), nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot watch for out-of-memory events: %w", err)
	}
	w := oomWatch{group: g, events: events, kills: make(chan struct{}, 1), notifiedEarly: isV1, patience: settleTime}
	go w.run(ctx)
	return w.kills, nil
}

// oomWatch is the state of one watch; only its goroutine touches it.
type oomWatch struct {
	group  *Group
	events *os.File // polled, not read: the kernel wakes the poll on an event
	kills  chan struct{}
	seen   int64
	// notifiedEarly: v1 signals when memory runs out, and increments the count of kills a
	// moment later, without another event.
	notifiedEarly bool
	patience      time.Duration // how long to wait for that count
}

// run checks the count once for kills before the watch was armed, and then after each event.
func (w *oomWatch) run(ctx context.Context) {
	defer w.events.Close()
	// A read deadline in the past ends the Read below.
	stop := context.AfterFunc(ctx, func() { w.events.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	conn, err := w.events.SyscallConn()
	if err != nil {
		return
	}
	look := func(context.Context) error { _, err := w.look(); return err }
	// Go polls edge-triggered (epoll(7), EPOLLET). An event during the function makes
	// Read call it again, so none is lost.
	_ = conn.Read(func(uintptr) (done bool) {
		err := look(ctx)
		look = w.settle
		return err != nil
	})
}

// settleTime bounds the wait for the count after v1's event. In between the kernel prints
// its report, which a slow console delays. The count may also never come: memory may have
// run out in an ancestor, and the kernel may have chosen a victim elsewhere.
const settleTime = 10 * time.Second

// settle looks until the count has grown. On v2 one look is enough: memory.events has
// changed before it wakes the poll.
func (w *oomWatch) settle(ctx context.Context) error {
	deadline := time.Now().Add(w.patience)
	for pause := time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		grown, err := w.look()
		if err != nil || grown || !w.notifiedEarly || time.Now().After(deadline) {
			return err
		}
		if !pauseFor(ctx, pause) {
			return ctx.Err()
		}
	}
}

// look notifies the receiver if the count has grown.
func (w *oomWatch) look() (grown bool, err error) {
	now, err := w.group.OOMKills()
	if err != nil || now <= w.seen {
		return false, err
	}
	w.seen = now
	select {
	case w.kills <- struct{}{}:
	default: // a value is pending already
	}
	return true, nil
}

// armV1 binds an eventfd to memory.oom_control (the kernel's cgroup-v1/memory.rst).
// Removing the group signals it too. The kernel needs the descriptor of memory.oom_control
// during the write only; it holds the eventfd itself, and unregisters it when the last
// descriptor is closed.
func armV1(dir string) (*os.File, error) {
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, err
	}
	events := os.NewFile(uintptr(fd), "eventfd")
	control, err := os.Open(filepath.Join(dir, "memory.oom_control"))
	if err == nil {
		defer control.Close()
		err = write(dir, "cgroup.event_control", fmt.Sprintf("%d %d", fd, control.Fd()))
	}
	if err != nil {
		return nil, errors.Join(err, events.Close())
	}
	return events, nil
}

// armV2 opens memory.events for polling; its counts include all sub-cgroups (cgroup-v2.rst:
// a changed value wakes poll). inotify would work too, but root has only 128 inotify
// instances for everything (fs.inotify.max_user_instances).
func armV2(dir string) (*os.File, error) {
	events, err := os.Open(filepath.Join(dir, "memory.events"))
	if err != nil {
		return nil, err
	}
	// This fails where Go's poller did not accept the file, and then the watch would never
	// be woken. It sets nothing else: files have no deadline at first.
	if err := events.SetReadDeadline(time.Time{}); err != nil {
		return nil, errors.Join(fmt.Errorf("cannot poll %s: %w", events.Name(), err), events.Close())
	}
	return events, nil
}
