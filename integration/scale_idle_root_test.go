//go:build root

package integration

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/methods"
	"clove.run/clove/client"
	"clove.run/clove/internal/testhost"
)

// supervisors returns the supervisors of this cloved's agents.
func (d *cloved) supervisors() (pids []int) {
	d.t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		d.t.Fatal(err)
	}
	program := filepath.Join(d.bin, "clove")
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		words, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)) // it may have ended
		if argv := bytes.Split(words, []byte{0}); string(argv[0]) == program && bytes.Contains(words, []byte("\x00supervise\x00")) &&
			bytes.Contains(words, []byte(d.run)) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// instances returns how many inotify instances a process has. Root has a limited number for
// all programs of the host (fs.inotify.max_user_instances, 128).
func instances(t *testing.T, pid int) (number int) {
	t.Helper()
	directory := fmt.Sprintf("/proc/%d/fd", pid)
	entries, err := os.ReadDir(directory)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if to, _ := os.Readlink(filepath.Join(directory, entry.Name())); strings.Contains(to, "inotify") {
			number++
		}
	}
	return number
}

func wantNoInotify(t *testing.T, pid int) {
	t.Helper()
	if n := instances(t, pid); n != 0 {
		t.Errorf("supervisor %d holds %d inotify instances", pid, n)
	}
}

// TestFollowersShareAnInstance: so any member may follow many logs.
func TestFollowersShareAnInstance(t *testing.T) {
	d := newCloved(t)
	d.detach("one", "echo up; sleep 3600")
	for range 5 {
		if line := d.follow("logs", "-f", "one").line(); line != "up" {
			t.Fatalf("%q", line)
		}
	}
	if n := instances(t, d.cmd.Process.Pid); n != 1 {
		t.Errorf("cloved holds %d inotify instances for five followers, want 1", n)
	}
}

// TestIdleAgentsDoNotCostInstances runs many agents at once, each with a supervisor. The
// control: their number is larger than root's limit of instances.
func TestIdleAgentsDoNotCostInstances(t *testing.T) {
	d, number := newCloved(t), testhost.Sample(1000, 24, 140)
	text, err := os.ReadFile("/proc/sys/fs/inotify/max_user_instances")
	if err != nil {
		t.Fatal(err)
	}
	most, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	if number >= 140 && number <= most {
		testhost.Missing(t, "%d agents do not exceed fs.inotify.max_user_instances, %d", number, most)
	}
	c, err := client.Dial(context.Background(), d.socket)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	each(number, func(i int) {
		if _, err := client.Do(context.Background(), c, methods.RunStart, api.StartParams{Spec: sleeper(fmt.Sprintf("idle-%d", i))}); err != nil {
			t.Error(err)
		}
	})
	listed, err := client.Collect(client.All(context.Background(), c, methods.RunList, listAll))
	if err != nil {
		t.Fatal(err)
	}
	running := 0
	for _, one := range listed {
		if one.Run.State == agent.StateRunning {
			running++
		}
	}
	pids := d.supervisors()
	if running != number || len(pids) != number {
		t.Errorf("%d agents run with %d supervisors, want %d", running, len(pids), number)
	}
	for _, pid := range pids {
		wantNoInotify(t, pid)
	}
	if fd, err := unix.InotifyInit1(unix.IN_CLOEXEC); err != nil {
		t.Errorf("root's own programs get no inotify instance: %v", err)
	} else {
		unix.Close(fd)
	}
	descriptors, threads := d.held()
	t.Logf("%d agents: cloved holds %d descriptors and %d threads", number, descriptors, threads)
	each(number, func(i int) {
		if err := client.Perform(context.Background(), c, methods.RunRemove, api.RemoveParams{RunParams: api.RunParams{Run: fmt.Sprintf("idle-%d", i)}, Force: true}); err != nil {
			t.Error(err)
		}
	})
}

// each calls do for 0 to number-1, eight at a time.
func each(number int, do func(int)) {
	var all sync.WaitGroup
	for first := range 8 {
		all.Go(func() {
			for i := first; i < number; i += 8 {
				do(i)
			}
		})
	}
	all.Wait()
}
