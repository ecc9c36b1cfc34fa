//go:build root

package main

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"clove.run/clove/egress/wire"
	"clove.run/clove/internal/testhost"
)

const noCaps = "0000000000000000"

// TestNothingIsLeft: the kernel shows no right on any thread of the process that serves.
func TestNothingIsLeft(t *testing.T) {
	testhost.Root(t)
	testhost.NoResidue(t, t.TempDir(), t.TempDir())
	g := start(t)
	g.setUp(wire.Limits{}, nil)
	uid := fmt.Sprintf("%d %[1]d %[1]d %[1]d", testUID)
	threads, err := os.ReadDir(g.proc("task"))
	if err != nil || len(threads) < 2 {
		t.Fatalf("%d threads, %v", len(threads), err)
	}
	for _, thread := range threads {
		text, err := os.ReadFile(g.proc("task/" + thread.Name() + "/status"))
		if err != nil {
			t.Fatal(err)
		}
		got := fields(string(text))
		for name, want := range map[string]string{
			"Uid": uid, "Gid": uid, "Groups": "", "Seccomp": "2", "Seccomp_filters": "2", "NoNewPrivs": "1",
			"CapInh": noCaps, "CapPrm": noCaps, "CapEff": noCaps, "CapBnd": noCaps, "CapAmb": noCaps,
		} {
			if got[name] != want {
				t.Errorf("thread %s: %s is %q, want %q", thread.Name(), name, got[name], want)
			}
		}
	}
	t.Logf("idle: %s resident, %s threads", g.status()["VmRSS"], g.status()["Threads"])
}

// TestTheRootIsEmpty: it is also read-only. The control is the test's own root.
func TestTheRootIsEmpty(t *testing.T) {
	testhost.Root(t)
	testhost.NoResidue(t, t.TempDir(), t.TempDir())
	if names, err := os.ReadDir("/proc/self/root"); err != nil || len(names) == 0 {
		t.Fatalf("control: %v, %v", names, err)
	}
	g := start(t)
	g.setUp(wire.Limits{}, nil)
	if names, err := os.ReadDir(g.proc("root")); err != nil || len(names) != 0 {
		t.Errorf("root has %v, %v", names, err)
	}
	if names, err := os.ReadDir(g.proc("cwd")); err != nil || len(names) != 0 {
		t.Errorf("working directory has %v, %v", names, err)
	}
	mounts, err := os.ReadFile(g.proc("mounts"))
	if lines := strings.Split(strings.TrimSpace(string(mounts)), "\n"); err != nil || len(lines) != 1 || !strings.Contains(lines[0], " / tmpfs ro,") {
		t.Errorf("mounts %q, %v", mounts, err)
	}
	if err := os.Mkdir(g.proc("root/new"), 0o700); err == nil {
		t.Error("the root can be written")
	}
}

// TestOnlyItsOwnDescriptors: it has the standard streams, the poller and the channel, although
// each launch leaks a file on purpose.
func TestOnlyItsOwnDescriptors(t *testing.T) {
	testhost.Root(t)
	testhost.NoResidue(t, t.TempDir(), t.TempDir())
	g := start(t)
	g.setUp(wire.Limits{}, nil)
	names, err := os.ReadDir(g.proc("fd"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		target, err := os.Readlink(g.proc("fd/" + name.Name()))
		if err != nil {
			t.Fatal(err)
		}
		kind, _, _ := strings.Cut(target, ":")
		if kind != "socket" && kind != "anon_inode" && kind != "pipe" && target != "/dev/null" {
			t.Errorf("descriptor %s is %s", name.Name(), target)
		}
	}
	if len(names) > 6 { // 0, 1, 2, epoll, eventfd, channel
		t.Errorf("%d descriptors", len(names))
	}
}

// TestLimits: the gate lowers limits that the launch left higher.
func TestLimits(t *testing.T) {
	testhost.Root(t)
	testhost.NoResidue(t, t.TempDir(), t.TempDir())
	g := start(t)
	g.setUp(wire.Limits{}, nil)
	text, err := os.ReadFile(g.proc("limits"))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"Max core file size": "0 0", "Max file size": "0 0",
		"Max locked memory": "0 0", "Max processes": "64 64"} {
		_, rest, _ := strings.Cut(string(text), name)
		if got := strings.Fields(rest); len(got) < 2 || got[0]+" "+got[1] != want {
			t.Errorf("%s: %.40q, want %s", name, rest, want)
		}
	}
}

// TestAWrongLaunchIsRefused: the gate ends before it serves anything. The tests above are the
// control.
func TestAWrongLaunchIsRefused(t *testing.T) {
	testhost.Root(t)
	testhost.NoResidue(t, t.TempDir(), t.TempDir())
	uid := fmt.Sprint(testUID)
	for _, c := range []struct {
		name      string
		flags     uintptr
		arguments []string
		want      string
	}{
		{"no user", freshNamespaces, nil, "started by clove"},
		{"root as user", freshNamespaces, []string{"0"}, "user id"},
		{"no number", freshNamespaces, []string{"x"}, "user id"},
		{"host's pid namespace", 0, []string{uid}, "started by clove"},
		{"host's network", freshNamespaces &^ syscall.CLONE_NEWNET, []string{uid}, "the net namespace is not new"},
		{"host's mounts", freshNamespaces &^ syscall.CLONE_NEWNS, []string{uid}, "the mnt namespace is not new"},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := launch(t, c.flags, c.arguments...)
			g.wait()
			if code := g.command.ProcessState.ExitCode(); code != 1 || !strings.Contains(g.stderr.String(), c.want) || strings.Count(g.stderr.String(), "\n") != 1 {
				t.Errorf("status %d, %q", code, &g.stderr)
			}
		})
	}
}

// TestTheGateEndsWithItsChannel: nothing else ends it.
func TestTheGateEndsWithItsChannel(t *testing.T) {
	testhost.Root(t)
	testhost.NoResidue(t, t.TempDir(), t.TempDir())
	g := start(t)
	g.setUp(wire.Limits{}, nil)
	g.conn.Close()
	g.wait()
	if code := g.command.ProcessState.ExitCode(); code != 0 {
		t.Errorf("%s, %q", g.command.ProcessState, &g.stderr)
	}
}

func fields(text string) map[string]string {
	found := map[string]string{}
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(line, ":")
		found[name] = strings.Join(strings.Fields(value), " ")
	}
	return found
}
