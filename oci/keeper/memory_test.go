package keeper

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/cgroups"
)

// memoryGroup is a v2 cgroup of plain files in which two kills can be counted, and
// which may be removed.
func memoryGroup(t *testing.T) (g *cgroups.Group, kill, remove func()) {
	t.Helper()
	directory := filepath.Join(t.TempDir(), "clove", string(agent.NewID()))
	if err := os.MkdirAll(directory, 0o755); err != nil {
		t.Fatal(err)
	}
	events, err := os.Create(filepath.Join(directory, "memory.events"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { events.Close() })
	write := func(text string) {
		t.Helper()
		if _, err := events.WriteAt([]byte(text), 0); err != nil { // no moment without a text
			t.Fatal(err)
		}
	}
	write("oom_kill 0\n")
	if g, err = cgroups.Open(map[string]string{"": directory}); err != nil {
		t.Fatal(err)
	}
	return g, func() { t.Helper(); write("oom_kill 2\n") }, func() {
		t.Helper()
		if err := os.RemoveAll(directory); err != nil {
			t.Fatal(err)
		}
	}
}

// TestAKillIsKnownWhenItsCgroupIsGone: systemd may have removed it. The control is
// a cgroup that stays until the container is removed, and is only asked in the end.
func TestAKillIsKnownWhenItsCgroupIsGone(t *testing.T) {
	for name, row := range map[string]struct {
		path    string
		counted bool // or the watch has only told of it yet
		status  agent.Status
		kills   int64
	}{
		"a scope, counted": {"/sys/fs/cgroup/system.slice/one.scope", true, agent.StatusOOM, 2},
		"a scope, told":    {"/sys/fs/cgroup/system.slice/one.scope", false, agent.StatusOOM, 1},
		"the control":      {"/sys/fs/cgroup/one", false, agent.StatusSignaled, 0},
	} {
		k, _ := holding(t, order{Record: filepath.Join(t.TempDir(), "one.json"), Cgroups: map[string]string{"": row.path}})
		var kill, remove func()
		k.group, kill, remove = memoryGroup(t)
		k.watchMemory()
		if (k.memory != nil) != (row.kills > 0) {
			t.Fatalf("%s: it is watched: %t", name, k.memory != nil)
		}
		kill()
		for deadline := time.Now().Add(patience); k.memory != nil && len(k.memory) == 0; time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("%s: nobody told", name)
			}
		}
		if row.counted {
			k.countKills(1)
		}
		remove()
		k.order.Phase = phaseStarted
		k.account(end{status: killed(unix.SIGKILL), at: time.Now()})
		got := recordIn(t, k.order.Record)
		if got.Status != row.status || (got.Events.OOMKill == nil) != (row.kills == 0) || row.kills > 0 && *got.Events.OOMKill != row.kills {
			t.Errorf("%s: %s, %v kills", name, got.Status, got.Events.OOMKill)
		}
	}
}
