package cgroups

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestOOMKills(t *testing.T) {
	cases := []struct {
		name  string
		files map[[2]string]string
		want  int64
	}{
		{"v1 adds up the tree", map[[2]string]string{
			{"memory", "memory.oom_control"}:     "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n",
			{"memory", "sub/memory.oom_control"}: "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n"}, 5},
		{"v2 has the sum", map[[2]string]string{{"", "memory.events"}: "low 0\nhigh 9\nmax 8\noom 2\noom_kill 1\noom_group_kill 0\n",
			{"", "sub/memory.events"}: "oom_kill 1\n"}, 1},
		{"none yet", map[[2]string]string{{"", "memory.events"}: "oom 0\noom_kill 0\n"}, 0},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if got, err := fakeGroup(t, c.files).OOMKills(); err != nil || got != c.want {
				t.Errorf("got %d, %v; want %d", got, err, c.want)
			}
		})
	}
}

func TestOOMKillsWhereTheyCannotBeTold(t *testing.T) {
	for name, g := range map[string]*Group{
		"v1 gone":                     absentGroup(t, "memory"),
		"v2 gone":                     absentGroup(t, ""),
		"v1 before Linux 4.13":        fakeGroup(t, map[[2]string]string{{"memory", "memory.oom_control"}: "under_oom 0\n"}),
		"hybrid without memory":       fakeGroup(t, map[[2]string]string{{"pids", "cgroup.procs"}: "", {"", "cgroup.procs"}: ""}),
		"v1 without the memory group": fakeGroup(t, map[[2]string]string{{"pids", "cgroup.procs"}: ""}),
	} {
		if n, err := g.OOMKills(); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: got %d, %v", name, n, err)
		}
	}
}

// fakeWatch watches a group of plain files: an eventfd wakes it, as the kernel wakes a poll of
// memory.events. happen overwrites the count in place, as the kernel does: the file is never
// empty.
func fakeWatch(t *testing.T, g *Group) (w *oomWatch, happen func(kills int)) {
	t.Helper()
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		t.Fatal(err)
	}
	events := os.NewFile(uintptr(fd), "eventfd")
	t.Cleanup(func() { events.Close() })
	w = &oomWatch{group: g, events: events, kills: make(chan struct{}, 1)}
	return w, func(kills int) {
		t.Helper()
		if err := write(g.paths[unified], "memory.events", fmt.Sprintf("oom_kill %d\n", kills)); err != nil {
			t.Fatal(err)
		}
		if _, err := events.Write([]byte{7: 1}); err != nil { // eventfd(2): 8 bytes, never read
			t.Fatal(err)
		}
	}
}

func expectKill(t *testing.T, kills <-chan struct{}) {
	t.Helper()
	select {
	case _, open := <-kills:
		if !open {
			t.Error("the channel was closed, which reads as a kill")
		}
	case <-time.After(10 * time.Second):
		t.Fatal("no kill was reported")
	}
}

func TestWatchOOMReportsEarlierAndLaterKillsOnce(t *testing.T) {
	t.Parallel()
	g := fakeGroup(t, map[[2]string]string{{"", "memory.events"}: "oom_kill 1\n"})
	ctx, cancel := context.WithCancel(t.Context())
	w, happen := fakeWatch(t, g)
	done := make(chan struct{})
	go func() { w.run(ctx); close(done) }()
	expectKill(t, w.kills) // kills from before the watch
	happen(1)              // an event without another kill
	happen(3)
	expectKill(t, w.kills)
	happen(4)
	expectKill(t, w.kills)
	cancel()
	<-done
	if len(w.kills) != 0 {
		t.Error("a kill was reported twice, or the end of the watch as one")
	}
	if err := w.events.Close(); !errors.Is(err, os.ErrClosed) {
		t.Errorf("the watch left its descriptor open: %v", err)
	}
}

// A file that cannot be polled would never report: the kernel's memory.events can be polled.
func TestAFileThatCannotBePolledIsNoWatch(t *testing.T) {
	t.Parallel()
	g := fakeGroup(t, map[[2]string]string{{"", "memory.events"}: "oom_kill 0\n"})
	if _, err := g.WatchOOM(t.Context()); !errors.Is(err, os.ErrNoDeadline) {
		t.Errorf("got %v, want %v", err, os.ErrNoDeadline)
	}
}

// v1 first reports and then counts: a report without a count is no kill.
func TestSettleWaitsForTheCount(t *testing.T) {
	g := fakeGroup(t, map[[2]string]string{{"memory", "memory.oom_control"}: "oom_kill 0\n"})
	w := oomWatch{group: g, kills: make(chan struct{}, 1), notifiedEarly: true, patience: time.Minute}
	settled := make(chan error)
	go func() { settled <- w.settle(t.Context()) }()
	if err := write(g.paths["memory"], "memory.oom_control", "oom_kill 1\n"); err != nil {
		t.Fatal(err)
	}
	if err := <-settled; err != nil || len(w.kills) != 1 {
		t.Errorf("got %v, %d reports", err, len(w.kills))
	}
	w.patience = 10 * time.Millisecond
	if err := w.settle(t.Context()); err != nil || len(w.kills) != 1 {
		t.Errorf("an announcement without a kill: %v, %d reports", err, len(w.kills))
	}
	w.patience = time.Minute
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := w.settle(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("settling outlived its context: %v", err)
	}
}

func TestWatchOOMWithoutAMemoryController(t *testing.T) {
	silent := fakeGroup(t, map[[2]string]string{{"", "cgroup.procs"}: "", {"pids", "cgroup.procs"}: ""})
	if kills, err := silent.WatchOOM(t.Context()); err != nil || kills == nil {
		t.Errorf("got %v, %v", kills, err)
	}
	for _, g := range []*Group{absentGroup(t, ""), absentGroup(t, "memory"),
		fakeGroup(t, map[[2]string]string{{"memory", "cgroup.procs"}: ""})} {
		if _, err := g.WatchOOM(t.Context()); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: got %v", filepath.Base(g.dirs[0]), err)
		}
	}
}
