//go:build root

package monitor

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/cgroups"
	"clove.run/clove/internal/testhost"
)

// memoryGroup is a cgroup in which each call of kill causes an OOM kill, and which can be
// removed.
func memoryGroup(t *testing.T) (g *cgroups.Group, kill, remove func()) {
	t.Helper()
	h, err := cgroups.Detect()
	if err == nil {
		err = h.Prepare()
	}
	if err != nil {
		t.Fatal(err)
	}
	all := h.Place(string(agent.NewID())).Paths
	paths := map[string]string{"": all[""]}
	if v1, ok := all["memory"]; ok {
		paths = map[string]string{"memory": v1}
	}
	if g, err = cgroups.Open(paths); err != nil {
		t.Fatal(err)
	}
	remove = func() {
		t.Helper()
		if err := g.Remove(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(remove)
	for _, directory := range paths {
		if err := os.MkdirAll(directory, 0o755); err != nil {
			t.Fatal(err)
		}
		for name, value := range map[string]string{"memory.limit_in_bytes": "16M", "memory.max": "16M", "memory.swap.max": "0"} {
			if err := os.WriteFile(filepath.Join(directory, name), []byte(value), 0); err != nil && !os.IsNotExist(err) && !os.IsPermission(err) {
				t.Fatal(err)
			}
		}
		kill = func() {
			t.Helper()
			eat := exec.Command("sh", "-c", `echo $$ >"$1/cgroup.procs" && head -c 64M /dev/zero | tail -c 64M >/dev/null`, "sh", directory)
			if err := eat.Run(); eat.ProcessState.ExitCode() != 128+int(unix.SIGKILL) {
				t.Fatalf("it was not killed: %v", err)
			}
		}
	}
	return g, kill, remove
}

// TestAKillIsKnownWhenItsCgroupIsGone: systemd may have removed it. The control is a cgroup
// that stays until the container is removed, and is read only at the end.
func TestAKillIsKnownWhenItsCgroupIsGone(t *testing.T) {
	testhost.Root(t)
	testhost.NoResidue(t)
	for name, row := range map[string]struct {
		path    string
		counted bool // or the watch has reported it only now
		status  agent.Status
		kills   int64
	}{
		"a scope, counted": {"/sys/fs/cgroup/system.slice/one.scope", true, agent.StatusOOM, 2},
		"a scope, told":    {"/sys/fs/cgroup/system.slice/one.scope", false, agent.StatusOOM, 1},
		"the control":      {"/sys/fs/cgroup/one", false, agent.StatusSignaled, 0},
	} {
		m, _ := holding(t, order{Record: filepath.Join(t.TempDir(), "one.json"), Cgroups: map[string]string{"": row.path}})
		var kill, remove func()
		m.group, kill, remove = memoryGroup(t)
		m.watchMemory()
		if (m.memory != nil) != (row.kills > 0) {
			t.Fatalf("%s: it is watched: %t", name, m.memory != nil)
		}
		kill()
		for deadline := time.Now().Add(testhost.Patience(patience)); m.memory != nil && len(m.memory) == 0; time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("%s: the watch reported no kill", name)
			}
		}
		if row.counted {
			kill()
			m.countKills(1)
		}
		remove()
		m.order.Phase = phaseStarted
		m.account(end{status: killed(unix.SIGKILL), at: time.Now()})
		got := recordIn(t, m.order.Record)
		if got.Status != row.status || (got.Events.OOMKill == nil) != (row.kills == 0) || row.kills > 0 && *got.Events.OOMKill != row.kills {
			t.Errorf("%s: %s, %v kills", name, got.Status, got.Events.OOMKill)
		}
	}
}
