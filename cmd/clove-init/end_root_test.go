//go:build root

package main

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"clove.run/clove/internal/initproto"
	"golang.org/x/sys/unix"
)

func TestEndings(t *testing.T) {
	for _, c := range []struct {
		name, script string
		want         initproto.Exited
	}{
		{"success", "exit 0", initproto.Exited{}},
		{"status", "exit 42", initproto.Exited{Code: 42}},
		{"signal", "kill -USR1 $$", initproto.Exited{Code: -1, Signal: unix.SIGUSR1}},
		{"kill", "kill -KILL $$", initproto.Exited{Code: -1, Signal: unix.SIGKILL}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := start(t, shell(c.script))
			b.started()
			got := b.exited()
			if got.WallNS <= 0 || got.WallNS > int64(patience) || got.ExecutedNS < got.WallNS || got.ExecutedNS > int64(patience) {
				t.Errorf("wall clock %d, executed %d", got.WallNS, got.ExecutedNS)
			}
			got.WallNS, got.ExecutedNS = 0, 0
			if got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
			if err := b.await(); err != nil {
				t.Errorf("clove-init: %v", err)
			}
		})
	}
}

// TestEveryoneGoesWithTheAgent: the processes that the agent leaves are killed and counted;
// those that ended before are not.
func TestEveryoneGoesWithTheAgent(t *testing.T) {
	b := start(t, shell(`sleep 1000 & setsid sleep 1000 & (trap "" TERM HUP; sleep 1000) & /bin/true; exit 7`))
	b.started()
	got := b.exited()
	// The third one is a shell that executes sleep or waits for it, so there are 3 or 4.
	if got.Code != 7 || got.Leftover < 3 || got.Leftover > 4 {
		t.Errorf("got %+v", got)
	}
	b.text() // returns, because no process holds the output
}

// TestOrphansAreReaped: PID 1 becomes the parent of orphans, and reaps them while the agent
// runs.
func TestOrphansAreReaped(t *testing.T) {
	text := runs(t, shell(`
		/bin/sh -c 'sleep 0.01 & echo $!' > /tmp/orphan
		orphan=$(cat /tmp/orphan)
		while [ -e /proc/$orphan ]; do :; done
		echo reaped`))
	if text != "reaped\n" {
		t.Errorf("agent wrote %q", text)
	}
}

// TestZombieFlood: thousands of orphans neither fill the process table nor keep PID 1 from its
// other work.
func TestZombieFlood(t *testing.T) {
	orders := shell(`
		while :; do (true & true & true & true & true & true & true & true &) ; done`)
	orders.WallClock, orders.StopGrace = 700*time.Millisecond, 0
	b := start(t, orders)
	b.started()
	if got := b.exited(); got.Cause != initproto.CauseDeadline {
		t.Errorf("got %+v", got)
	}
}

// TestSignals: signals that a terminal sends to the foreground group go to the group; all
// others go to the agent only.
func TestSignals(t *testing.T) {
	const group = `trap 'echo parent' HUP INT QUIT; /bin/sh -c 'echo ready; exec sleep 1000'; echo after`
	const alone = `sleep 1000 & trap 'kill -0 $! && echo alive; exit 0' TERM USR1 USR2; echo ready; wait`
	for _, c := range []struct {
		number syscall.Signal
		script string
		want   string
	}{
		{unix.SIGHUP, group, "parent\nafter\n"},
		{unix.SIGINT, group, "parent\nafter\n"},
		{unix.SIGQUIT, group, "parent\nafter\n"},
		{unix.SIGTERM, alone, "alive\n"},
		{unix.SIGUSR1, alone, "alive\n"},
		{unix.SIGUSR2, alone, "alive\n"},
	} {
		t.Run(unix.SignalName(c.number), func(t *testing.T) {
			b := start(t, shell(c.script))
			b.started()
			b.expect("ready")
			b.send(initproto.Message{Signal: &initproto.Signal{Number: c.number}})
			if got := b.text(); !strings.HasSuffix(got, c.want) { // the shell may add "Hangup"
				t.Errorf("agent wrote %q, want %q", got, c.want)
			}
			if end := b.exited(); end.Code != 0 || end.Cause != initproto.CauseSelf {
				t.Errorf("got %+v", end)
			}
		})
	}
}

// TestWhatComesEarlyIsNotLost: a message arrives before the agent executes.
func TestWhatComesEarlyIsNotLost(t *testing.T) {
	for name, c := range map[string]struct {
		early initproto.Message
		want  initproto.Exited
	}{
		"stop":         {initproto.Message{Stop: &initproto.Stop{Grace: time.Hour}}, initproto.Exited{Code: -1, Signal: unix.SIGTERM, Cause: initproto.CauseStop}},
		"term":         {initproto.Message{Signal: &initproto.Signal{Number: unix.SIGTERM}}, initproto.Exited{Code: -1, Signal: unix.SIGTERM}},
		"to the group": {initproto.Message{Signal: &initproto.Signal{Number: unix.SIGHUP}}, initproto.Exited{Code: -1, Signal: unix.SIGHUP}},
	} {
		t.Run(name, func(t *testing.T) {
			b := start(t, shell("exec sleep 1000"))
			b.send(c.early)
			m := b.next()
			if m.Started != nil { // a stop may end it before it starts
				m = b.next()
			}
			if m.Exited == nil {
				t.Fatalf("it ended with %+v", m.ExecFailed)
			}
			got := *m.Exited
			if got.WallNS, got.ExecutedNS = 0, 0; got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}
