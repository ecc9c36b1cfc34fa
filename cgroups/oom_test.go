package cgroups

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
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

// fakeEvents overwrites in place, as the kernel's counter changes: never empty.
func fakeEvents(t *testing.T, g *Group, kills int) {
	t.Helper()
	if err := write(g.paths[unified], "memory.events", fmt.Sprintf("oom_kill %d\n", kills)); err != nil {
		t.Fatal(err)
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
	g := fakeGroup(t, map[[2]string]string{{"", "memory.events"}: "oom_kill 1\n"})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	kills, err := g.WatchOOM(ctx)
	if err != nil {
		t.Fatal(err)
	}
	expectKill(t, kills) // from before the watch
	fakeEvents(t, g, 1)  // an event that is no kill
	fakeEvents(t, g, 3)
	expectKill(t, kills)
	fakeEvents(t, g, 4)
	expectKill(t, kills)
	select {
	case <-kills:
		t.Error("a kill was reported twice")
	default:
	}
}

func TestWatchOOMEndsSilently(t *testing.T) {
	g := fakeGroup(t, map[[2]string]string{{"", "memory.events"}: "oom_kill 0\n"})
	events, err := armV2(g.paths[unified])
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	w := oomWatch{group: g, events: events, kills: make(chan struct{}, 1)}
	done := make(chan struct{})
	go func() { w.run(ctx); close(done) }()
	cancel()
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		t.Fatal("the watch outlived its context")
	}
	if len(w.kills) != 0 {
		t.Error("the end of a watch was reported as a kill")
	}
	if err := events.Close(); !errors.Is(err, os.ErrClosed) {
		t.Errorf("the watch left its descriptor open: %v", err)
	}
}

// v1 announces first and counts later: the announcement alone is no kill.
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
