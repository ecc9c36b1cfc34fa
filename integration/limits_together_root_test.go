//go:build root

package integration

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/internal/testhost"
)

// newShared starts a cloved whose agents may have this part of the host's memory together.
func newShared(t *testing.T, share float64) *cloved {
	t.Helper()
	d := newCloved(t)
	d.stop(unix.SIGTERM)
	d.share = fmt.Sprintf("%.6f", share)
	d.serve()
	// The cgroup of all agents stays for those that follow, and with it its limit.
	t.Cleanup(func() {
		d.share = ""
		d.config()
		if err := d.cmd.Process.Signal(unix.SIGHUP); err != nil {
			t.Error(err)
		}
		until(t, "the limit is that of memory_share 0", func() bool { return strings.Contains(d.log(), "was reloaded") })
	})
	return d
}

// hostMiB is the host's memory.
func hostMiB(t *testing.T) int64 {
	t.Helper()
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		t.Fatal(err)
	}
	return int64(info.Totalram) * int64(info.Unit) >> 20
}

// TestIdleAgentsOfTheDefaultMemory: their limits together are above what all agents may
// have, and none waits. The control is one that may not count with so little.
func TestIdleAgentsOfTheDefaultMemory(t *testing.T) {
	total := hostMiB(t)
	number := min(testhost.Sample(100, 24, 12), int(total/240))
	if int64(number)*1024 <= total*8/10 {
		t.Fatalf("%d agents of 1 GiB fit into the share of %d MiB with their limits", number, total)
	}
	d := newShared(t, 0.8)
	each(number, func(i int) { d.detach(fmt.Sprintf("idle-%d", i), "sleep 1000000") })
	if running := strings.Count(d.ok("ps", "--filter", "state=running"), "idle-"); running != number {
		t.Errorf("%d of %d idle agents run", running, number)
	}
	// Each new one counts with an eighth of its limit.
	large := []string{"--memory", mib(int(total * 7 / 10))}
	for i := range 20 {
		d.detach(fmt.Sprintf("large-%d", i), "sleep 1000000", large...)
		if queued := d.ok("ps", "--filter", "state=queued"); strings.Contains(queued, "large-") {
			break
		}
	}
	waiting := d.clove("run", "-d", "--name", "last", "--", "true")
	if !strings.Contains(waiting.stderr, "waits behind large-") {
		t.Errorf("control: %+v", waiting)
	}
	d.ok("rm", "-f", "last")
	reason := d.clove("run", "-d", "--priority", "9", "--name", "first", large[0], large[1], "--", "true").stderr
	for _, part := range []string{"agents use ", " MiB in reserve, of ", "the host has ", " MiB available, and needs "} {
		if !strings.Contains(reason, part) {
			t.Errorf("the reason has no %q: %s", part, reason)
		}
	}
}

// holder waits for the file /go/go, holds argv[1] MiB in processes of argv[2] MiB, and says so in its log.
const holder = `
import os, sys, time
while not os.path.exists("/go/go"):
    time.sleep(0.1)
size, each = int(sys.argv[1]), int(sys.argv[2])
for _ in range(size // each):
    done, say = os.pipe()
    if os.fork() == 0:
        held = b"x" * (each << 20)
        os.write(say, b"h")
        time.sleep(1000000)
    os.read(done, 1)
print("holds", flush=True)
time.sleep(1000000)
`

// promise starts agents that hold so many MiB each when begin is called.
func (d *cloved) promise(names []string, limit, holds, each int) (begin func()) {
	d.t.Helper()
	dir := d.t.TempDir()
	if err := os.Chmod(dir, 0o755); err != nil {
		d.t.Fatal(err)
	}
	for _, name := range names {
		d.ok("run", "-d", "--name", name, "--memory", mib(limit), "-v", dir+":/go:ro", "--", python, "-c", holder, fmt.Sprint(holds), fmt.Sprint(each))
	}
	for _, name := range names {
		if state := d.inspected(name).State; state != agent.StateRunning {
			d.t.Fatalf("%s is %s", name, state)
		}
	}
	return func() {
		if err := os.WriteFile(filepath.Join(dir, "go"), nil, 0o644); err != nil {
			d.t.Fatal(err)
		}
	}
}

func (d *cloved) inspected(name string) (run agent.Run) {
	d.t.Helper()
	if err := json.Unmarshal([]byte(d.ok("inspect", name)), &run); err != nil {
		d.t.Fatal(err)
	}
	return run
}

// outcomes waits until each has its memory or has ended, and until no more are left than can hold theirs:
// the one that the kernel ends may have had it. It counts.
func (d *cloved) outcomes(names []string, most int) (hold, oom int, said string) {
	d.t.Helper()
	ended := func(name string) bool { return d.inspected(name).State == agent.StateEnded }
	for _, name := range names {
		until(d.t, name+" holds its memory or has ended", func() bool {
			return ended(name) || strings.Contains(d.clove("logs", name).stdout, "holds")
		})
	}
	until(d.t, "no more are left than can hold their memory", func() bool {
		return len(slices.DeleteFunc(slices.Clone(names), ended)) <= most
	})
	for _, name := range names {
		if d.inspected(name).State != agent.StateEnded {
			hold++
			continue
		}
		why := d.clove("why", name).stdout
		said += why
		if record := d.inspected(name).Record; record.Status == agent.StatusOOM && record.Limit.Name == agent.LimitHostMemory {
			oom++
		}
	}
	return hold, oom, said
}

// TestMemoryPromisedTwice: two agents that fit with their reserves, and not with what they
// then hold. One of them ends, and its end says why; on a busy machine the kernel may end the
// other, too, before the memory of the first is free. The control is the same with memory for both.
func TestMemoryPromisedTwice(t *testing.T) {
	names := []string{"one", "other"}
	for _, c := range []struct {
		what           string
		shareMiB, hold int
	}{{"control: both have it", 900, 2}, {"it is promised twice", 400, 1}} {
		t.Run(c.what, func(t *testing.T) {
			d := newShared(t, float64(c.shareMiB)/float64(hostMiB(t)))
			begin := d.promise(names, 390, 240, 240)
			begin()
			hold, oom, said := d.outcomes(names, c.hold)
			if hold > c.hold || oom != 2-hold || c.hold == 2 && hold < 2 {
				t.Errorf("%d hold their memory and %d ended as oom, want %d and %d\n%s", hold, oom, c.hold, 2-c.hold, said)
			}
			if oom > 0 && !strings.Contains(said, "had no more") {
				t.Errorf("the end does not say why: %s", said)
			}
		})
	}
}

// TestMemoryPromisedTwiceEndsNothingOfTheHost fills the whole memory of the virtual machine,
// which must not happen to a host with others on it. The control takes the limit of all
// agents away; then the kernel looks for a victim on the whole host, and ends its largest
// process, which is no agent's.
func TestMemoryPromisedTwiceEndsNothingOfTheHost(t *testing.T) {
	if testhost.Lane() != testhost.LaneVM {
		t.Log("this host's memory is not filled: TestMemoryPromisedTwice shows that the limit of all agents holds")
		return
	}
	total := int(hostMiB(t))
	for _, c := range []struct {
		what     string
		limited  bool
		survives bool
	}{{"control: no limit of all agents", false, false}, {"with the limit", true, true}} {
		t.Run(c.what, func(t *testing.T) {
			d := newShared(t, 0.5)
			names := []string{"one", "other"}
			begin := d.promise(names, total*49/100, total*45/100/64*64, 64)
			service := bystander(t, total/4)
			if !c.limited {
				onHost(t, "sh", "-c", "echo max >/sys/fs/cgroup/clove.slice/clove-agents.service/agents/memory.max")
			}
			begin()
			_, oom, said := d.outcomes(names, map[bool]int{true: 1, false: len(names)}[c.limited])
			if lives := service.lives(); lives != c.survives {
				t.Errorf("the service of the host lives: %v, want %v\n%s", lives, c.survives, said)
			}
			if c.limited && (oom == 0 || !strings.Contains(said, "had no more")) {
				t.Errorf("%d agents ended as oom: %s", oom, said)
			}
		})
	}
}

// service is a process of the host that holds memory.
type service struct{ ended chan struct{} }

// bystander holds so many MiB until the test's end, in a cgroup of its own: systemd would end
// the test's unit with a process of it that the kernel killed for memory.
func bystander(t *testing.T, mebibytes int) service {
	t.Helper()
	cmd := exec.Command(python, "-c", "import sys, time; held = b'x' * (int(sys.argv[1]) << 20); print('holds', flush=True); time.sleep(1000000)", fmt.Sprint(mebibytes))
	const group = "/sys/fs/cgroup/bystander"
	if err := os.Mkdir(group, 0o755); err != nil {
		t.Fatal(err)
	}
	dir, err := os.Open(group)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(dir.Fd())}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err == nil {
		_, err = out.Read(make([]byte, 1))
	}
	if err != nil {
		t.Fatal(err)
	}
	s := service{make(chan struct{})}
	go func() {
		defer close(s.ended)
		cmd.Wait() // by a signal, whichever it is
	}()
	t.Cleanup(func() {
		cmd.Process.Kill()
		<-s.ended
		until(t, "its cgroup is removed", func() bool { return os.Remove(group) == nil })
	})
	return s
}

// lives looks a moment later: a process that the kernel has chosen is killed at once.
func (s service) lives() bool {
	select {
	case <-s.ended:
		return false
	case <-time.After(time.Second):
		return true
	}
}
