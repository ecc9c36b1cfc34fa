//go:build root

package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"clove.run/clove/internal/initproto"
	"clove.run/clove/internal/rlimits"
	"clove.run/clove/internal/testhost"
)

// status runs cat on /proc/self/status and returns its fields.
func status(t *testing.T, change func(*initproto.Orders)) map[string]string {
	t.Helper()
	orders := command("/bin/cat", "/proc/self/status")
	change(&orders)
	return fields(runs(t, orders))
}

func fields(text string) map[string]string {
	found := map[string]string{}
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(line, ":")
		found[name] = strings.Join(strings.Fields(value), " ")
	}
	return found
}

func expectFields(t *testing.T, got, want map[string]string) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if got[name] != want[name] {
			t.Errorf("%s is %q, want %q", name, got[name], want[name])
		}
	}
}

const (
	noCaps    = "0000000000000000"
	noSignals = "0000000000000000"
)

// TestAgentStartsBare: ids, capabilities and signals are as ordered, and the agent inherits
// nothing of PID 1.
func TestAgentStartsBare(t *testing.T) {
	got := status(t, func(o *initproto.Orders) { o.UID, o.GID, o.Groups = 1000, 1001, []uint32{4, 27} })
	expectFields(t, got, map[string]string{
		"Uid": "1000 1000 1000 1000", "Gid": "1001 1001 1001 1001", "Groups": "4 27",
		"CapInh": noCaps, "CapPrm": noCaps, "CapEff": noCaps, "CapBnd": noCaps, "CapAmb": noCaps,
		"SigBlk": noSignals, "SigIgn": noSignals, "SigCgt": noSignals, "ShdPnd": noSignals,
		"NoNewPrivs": "1", "Umask": "0022", "Threads": "1", "PPid": "1",
	})
}

// TestRootStartsBare: id 0 also gets only what was ordered.
func TestRootStartsBare(t *testing.T) {
	got := status(t, func(o *initproto.Orders) { o.UID, o.GID = 0, 0 })
	expectFields(t, got, map[string]string{"Uid": "0 0 0 0", "Groups": "",
		"CapInh": noCaps, "CapPrm": noCaps, "CapEff": noCaps, "CapBnd": noCaps, "CapAmb": noCaps})
}

// TestCapabilities is the control of the two tests above: ordered capabilities arrive, and no
// others.
func TestCapabilities(t *testing.T) {
	const set = "0000000000000c01" // chown 0, net_bind_service 10, net_broadcast 11
	for _, uid := range []uint32{0, agentUID} {
		t.Run(fmt.Sprint("uid ", uid), func(t *testing.T) {
			got := status(t, func(o *initproto.Orders) {
				o.UID, o.Caps = uid, []string{"CAP_CHOWN", "CAP_NET_BIND_SERVICE", "CAP_NET_BROADCAST"}
			})
			expectFields(t, got, map[string]string{"CapInh": set, "CapPrm": set, "CapEff": set, "CapBnd": set, "CapAmb": set})
		})
	}
}

// TestRlimits: every limit is as ordered, also limits under which a Go program cannot run.
func TestRlimits(t *testing.T) {
	want := map[string]initproto.Rlimit{
		"Max cpu time": {Name: "cpu", Soft: 100, Hard: 200}, "Max file size": {Name: "fsize", Soft: 1 << 20, Hard: 2 << 20},
		"Max data size": {Name: "data", Soft: 4 << 20, Hard: 5 << 20}, "Max stack size": {Name: "stack", Soft: 1 << 20, Hard: 2 << 20},
		"Max core file size": {Name: "core", Soft: 0, Hard: 0}, "Max resident set": {Name: "rss", Soft: 1 << 20, Hard: 1 << 21},
		"Max processes": {Name: "nproc", Soft: 3, Hard: 4}, "Max open files": {Name: "nofile", Soft: 5, Hard: 6},
		"Max locked memory": {Name: "memlock", Soft: 0, Hard: 4096}, "Max address space": {Name: "as", Soft: 16 << 20, Hard: 32 << 20},
		"Max file locks": {Name: "locks", Soft: 7, Hard: 8}, "Max pending signals": {Name: "sigpending", Soft: 9, Hard: 10},
		"Max msgqueue size": {Name: "msgqueue", Soft: 0, Hard: 1}, "Max nice priority": {Name: "nice"},
		"Max realtime priority": {Name: "rtprio"}, "Max realtime timeout": {Name: "rttime", Soft: 1000, Hard: 2000},
	}
	if len(want) != len(rlimits.Names()) {
		t.Fatalf("%d of %d limits", len(want), len(rlimits.Names()))
	}
	orders := command("/bin/cat", "/proc/self/limits")
	orders.Rlimits = nil
	for _, limit := range want {
		orders.Rlimits = append(orders.Rlimits, limit)
	}
	got := map[string]string{}
	for line := range strings.Lines(runs(t, orders)) {
		const nameColumns = 26
		got[strings.TrimSpace(line[:nameColumns])] = strings.Join(strings.Fields(line[nameColumns:])[:2], " ")
	}
	for name, limit := range want {
		if value := fmt.Sprint(limit.Soft, limit.Hard); got[name] != value {
			t.Errorf("%s is %q, want %q", name, got[name], value)
		}
	}
}

// TestDescriptors: the agent has descriptors 0, 1 and 2 only, although the launch leaked two
// on purpose.
func TestDescriptors(t *testing.T) {
	// ls itself has one more: the folder that it lists.
	if got := runs(t, command("/bin/ls", "/proc/self/fd")); got != "0\n1\n2\n3\n" {
		t.Errorf("descriptors %q", strings.Fields(got))
	}
}

// TestSession: the agent leads a session and a process group of its own.
func TestSession(t *testing.T) {
	got := strings.Fields(runs(t, command("/bin/cat", "/proc/self/stat")))
	if got[0] != got[4] || got[0] != got[5] || got[6] != "0" {
		t.Errorf("pid %s, group %s, session %s, terminal %s", got[0], got[4], got[5], got[6])
	}
}

// TestEnvironmentAndArguments: they arrive unchanged, megabytes of them.
func TestEnvironmentAndArguments(t *testing.T) {
	orders := command("/bin/cat", "/proc/self/environ", "/proc/self/cmdline")
	orders.Env = initproto.Strings{"A=\xff\x01<&>", "", "no equals sign", "A=twice"}
	want := strings.Join(orders.Env, "\x00") + "\x00" + strings.Join(orders.Argv, "\x00") + "\x00"
	if got := runs(t, orders); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	orders = shell(`for n in $(seq 0 15); do eval 'echo ${#V'$n'}'; done | uniq -c`)
	for n := range 16 {
		orders.Env = append(orders.Env, fmt.Sprintf("V%d=%s", n, strings.Repeat("x", 100_000)))
	}
	if got := strings.Fields(runs(t, orders)); !slices.Equal(got, []string{"16", "100000"}) {
		t.Errorf("environment of 1.6 MB: %q", got)
	}
}

// TestInputAndOutputAreTheAgents: PID 1 keeps neither end open.
func TestInputAndOutputAreTheAgents(t *testing.T) {
	b := start(t, shell(`echo ready; exec 0<&- 1>&-; while :; do sleep 1000; done`))
	b.started()
	if got := b.text(); got != "ready\n" {
		t.Errorf("agent wrote %q", got)
	}
	broken := []unix.PollFd{{Fd: int32(b.stdin.Fd())}} // poll(2) always reports POLLERR: no reader is left
	if n, err := unix.Poll(broken, int(testhost.Patience(patience).Milliseconds())); n != 1 || err != nil {
		t.Errorf("a process still reads the agent's input: %v", err)
	}
	b.send(initproto.Message{Stop: &initproto.Stop{}})
	b.exited()
}
