//go:build root

package runtime

import (
	"os"
	"slices"
	"testing"
	"time"

	"clove.run/clove/agent"
)

func TestStatsAreOfNow(t *testing.T) {
	a := startLive(t, `head -c 40000000 /dev/zero > /tmp/zeros; echo written; exec sleep 1000`, nil)
	a.line()
	got, err := a.Stats()
	if err != nil {
		t.Fatal(err)
	}
	if got.MemoryBytes == nil || *got.MemoryBytes < 1<<20 || *got.MemoryBytes > got.Limits.MemoryBytes {
		t.Errorf("memory %v", got.MemoryBytes)
	}
	if got.Pids == nil || *got.Pids < 2 || *got.Pids > got.Limits.Pids {
		t.Errorf("pids %v", got.Pids)
	}
	if u := got.Usage; u.CPUMS == nil || u.DiskBytes == nil || u.OutputBytes == nil || *u.OutputBytes != int64(len("written\n")) {
		t.Errorf("%+v", got.Usage)
	}
	if got.Paused || got.WallMS < 0 || time.Since(got.Time) > soon {
		t.Errorf("%+v", got)
	}
}

func TestProcessesAreTheAgentsOwn(t *testing.T) {
	a := startLive(t, `sleep 1000 & echo ready; exec sleep 2000`, nil)
	a.line()
	var all []agent.Process
	// The shell executes sleep a moment after it said so.
	for deadline := time.Now().Add(soon); ; {
		var err error
		if all, err = a.Processes(); err != nil {
			t.Fatal(err)
		}
		if len(all) == 3 && slices.Equal(all[1].Command, []string{"sleep", "2000"}) && slices.Equal(all[2].Command, []string{"sleep", "1000"}) {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%+v", all)
		}
	}
	if all[0].PID != 1 || all[0].ParentPID != 0 || all[0].UID != agent.InitUID || all[0].RSSBytes < 1<<20 {
		t.Errorf("clove-init is %+v", all[0])
	}
	for _, p := range all[1:] {
		if p.UID != 1000 || p.Threads != 1 || p.State == "" || time.Since(p.Started).Abs() > soon {
			t.Errorf("%+v", p)
		}
	}
	if all[1].ParentPID != 1 || all[2].ParentPID != all[1].PID {
		t.Errorf("parents %d and %d", all[1].ParentPID, all[2].ParentPID)
	}
	if slices.ContainsFunc(all, func(p agent.Process) bool { return p.PID == os.Getpid() }) {
		t.Error("a process of the host's is among them")
	}
}
