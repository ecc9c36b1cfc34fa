//go:build root

package integration

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/internal/rlimits"
	"clove.run/clove/internal/testhost"
)

// ulimits are docker's names, each with its name in proc_pid_limits(5) and a value with which
// a shell still works.
var ulimits = map[string]struct {
	row   string
	value uint64
}{
	"as":         {"Max address space", 3 << 30},
	"core":       {"Max core file size", 1 << 20},
	"cpu":        {"Max cpu time", 1000},
	"data":       {"Max data size", 2 << 30},
	"fsize":      {"Max file size", 1 << 29},
	"locks":      {"Max file locks", 100},
	"memlock":    {"Max locked memory", 1 << 16},
	"msgqueue":   {"Max msgqueue size", 1 << 15},
	"nice":       {"Max nice priority", 10},
	"nofile":     {"Max open files", 123},
	"nproc":      {"Max processes", 200},
	"rss":        {"Max resident set", 1 << 29},
	"rtprio":     {"Max realtime priority", 10},
	"rttime":     {"Max realtime timeout", 1_000_000},
	"sigpending": {"Max pending signals", 77},
	"stack":      {"Max stack size", 4 << 20},
}

// TestEveryUlimitCanBeSet sets all of them at once, soft below hard, up to clove's own limits.
// The control is an agent without the flags, which has other values.
func TestEveryUlimitCanBeSet(t *testing.T) {
	h := newHost(t)
	var flags []string
	want := map[string][2]uint64{}
	for _, name := range rlimits.Names() {
		limit, known := ulimits[name]
		if !known {
			t.Errorf("%s is not tested", name)
			continue
		}
		number, _ := rlimits.Resource(name)
		var own unix.Rlimit
		if err := unix.Getrlimit(number, &own); err != nil {
			t.Fatal(err)
		}
		hard := min(limit.value, own.Max)
		want[limit.row] = [2]uint64{hard / 2, hard}
		flags = append(flags, "--ulimit", fmt.Sprintf("%s=%d:%d", name, hard/2, hard))
	}
	for _, row := range []string{"Max open files", "Max processes", "Max stack size"} {
		if limitsOf(t, h.agent(nil, "cat", "/proc/self/limits"))[row] == want[row] {
			t.Errorf("control: %s is %v without any flag", row, want[row])
		}
	}
	got := limitsOf(t, h.agent(flags, "cat", "/proc/self/limits"))
	for row, values := range want {
		if got[row] != values {
			t.Errorf("%s is %v, want %v", row, got[row], values)
		}
	}
}

// limitsOf reads soft and hard values by row.
func limitsOf(t *testing.T, r result) map[string][2]uint64 {
	t.Helper()
	if r.want(t, agent.StatusExited, 0, r.stdout); t.Failed() {
		t.FailNow()
	}
	limits := map[string][2]uint64{}
	for _, m := range regexp.MustCompile(`(?m)^(Max [a-z ]+?)  +(\d+|unlimited) +(\d+|unlimited)`).FindAllStringSubmatch(r.stdout, -1) {
		var values [2]uint64
		for i, text := range m[2:] {
			if _, err := fmt.Sscan(text, &values[i]); err != nil {
				values[i] = agent.RlimitInfinity
			}
		}
		limits[m[1]] = values
	}
	return limits
}

// TestUlimitsBite: the effect of some of them on a program, and that a larger limit has none.
func TestUlimitsBite(t *testing.T) {
	h := newHost(t)
	for _, c := range []struct {
		name, roomy, tight string
		script             string // prints the errno, or "fine"
		feels              string
		status             agent.Status
		code               int
	}{
		{"nofile", "200", "50", `os.dup(0)`, "EMFILE", agent.StatusExited, 0},
		{"nproc", "200", "50", `os.fork() or os.read(0, 1) or os._exit(0)`, "EAGAIN", agent.StatusExited, 0},
		{"as", "2147483648", "67108864", `held.append(mmap.mmap(-1, 1 << 20))`, "ENOMEM", agent.StatusExited, 0},
		{"fsize", "1048576", "65536", `os.write(out, b"x" * 1024)`, "", agent.StatusSignaled, 128 + 25},
	} {
		t.Run(c.name, func(t *testing.T) {
			program := `
import errno, mmap, os, signal
held = []
signal.signal(signal.SIGXFSZ, signal.SIG_DFL) # Python ignores it
out = os.open("/tmp/out", os.O_WRONLY | os.O_CREAT)
try:
    for _ in range(100):
        ` + c.script + `
    print("fine", flush=True)
except OSError as e:
    print(errno.errorcode[e.errno], flush=True)
os._exit(0)
`
			for value, want := range map[string]string{c.roomy: "fine", c.tight: c.feels} {
				r := h.start([]string{"--ulimit", c.name + "=" + value}, python, "-c", program)
				if want == "" {
					r.wait().want(t, c.status, c.code, "")
				} else if line := r.line(); line != want {
					t.Errorf("%s=%s: %s, want %s", c.name, value, line, want)
					r.wait()
				} else {
					r.wait().want(t, agent.StatusExited, 0, "")
				}
			}
		})
	}
}

// bounded runs `clove run` with hard limits of 1000 open files, with or without
// CAP_SYS_RESOURCE.
func (h *host) bounded(raisable bool, flags ...string) result {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience())
	defer cancel()
	file := filepath.Join(h.t.TempDir(), "record.json")
	cmd := h.command(ctx, append([]string{"run", "--rm", "--result", file}, flags...)...)
	with := ""
	if !raisable {
		with = "setpriv --bounding-set=-sys_resource --inh-caps=-sys_resource "
	}
	cmd.Args = append([]string{"sh", "-c", "ulimit -n 1000; exec " + with + `"$@"`, "sh"}, cmd.Args...)
	cmd.Path = "/bin/sh"
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil && cmd.ProcessState.ExitCode() < 0 {
		h.t.Fatalf("%v: %v\n%s", cmd.Args, err, &errs)
	}
	r := result{stdout: out.String(), stderr: errs.String(), code: cmd.ProcessState.ExitCode()}
	if r.code != agent.ExitStartFailed {
		r.record = readRecord(h.t, file)
	}
	return r
}

// TestHardLimitsAboveCloves: without CAP_SYS_RESOURCE they are refused before anything starts,
// unless a lower limit is accepted; with it they are set.
func TestHardLimitsAboveCloves(t *testing.T) {
	h := newHost(t)
	testhost.Tool(t, "setpriv")
	show := []string{"--", "sh", "-c", "ulimit -Sn; ulimit -Hn"}
	within := h.bounded(false, append([]string{"--ulimit", "nofile=500:1000"}, show...)...)
	within.want(t, agent.StatusExited, 0, "500\n1000\n")

	r := h.bounded(false, append([]string{"--ulimit", "nofile=500:1500"}, show...)...)
	if r.code != agent.ExitStartFailed || r.stdout != "" || !strings.Contains(r.stderr, "at most 1000 here") ||
		!strings.Contains(r.stderr, "hint: ask for --ulimit nofile=1000 or less") {
		t.Errorf("exit %d, %q\n%s", r.code, r.stdout, r.stderr)
	}
	r = h.bounded(false, append([]string{"--ulimit", "nofile=500:1500", "--ulimit", "core=0", "--allow-unenforced", "rlimits"}, show...)...)
	r.want(t, agent.StatusExited, 0, "500\n1000\n")
	if _, said := r.record.Enforced[agent.ControlRlimits]; said || strings.Join(r.record.Unenforced, " ") != agent.ControlRlimits {
		t.Errorf("enforced %v, unenforced %v", r.record.Enforced, r.record.Unenforced)
	}
	if held, err := unix.PrctlRetInt(unix.PR_CAPBSET_READ, unix.CAP_SYS_RESOURCE, 0, 0, 0); err != nil || held == 0 {
		t.Log("this host's root has no CAP_SYS_RESOURCE: raising a hard limit is tested in the virtual machine only")
		return
	}
	r = h.bounded(true, append([]string{"--ulimit", "nofile=500:1500"}, show...)...)
	r.want(t, agent.StatusExited, 0, "500\n1500\n")
}

// TestAWeakenedControlIsRecorded removes a controller for clove alone, in a mount namespace of
// its own.
func TestAWeakenedControlIsRecorded(t *testing.T) {
	h := newHost(t)
	testhost.Tool(t, "unshare")
	// v1: the hierarchy is not mounted. v2: the root does not list the controller.
	hide := "umount /sys/fs/cgroup/pids"
	if testhost.Cgroup() == testhost.CgroupV2 {
		without := filepath.Join(t.TempDir(), "controllers")
		hide = "sed 's/ *pids//' /sys/fs/cgroup/cgroup.controllers >" + without + " && mount --bind " + without + " /sys/fs/cgroup/cgroup.controllers"
	}
	run := func(flags ...string) result {
		ctx, cancel := context.WithTimeout(context.Background(), patience())
		defer cancel()
		file := filepath.Join(t.TempDir(), "record.json")
		cmd := h.command(ctx, append(append([]string{"run", "--rm", "--result", file}, flags...), "--", python, "-c", forkUntilRefused, "40", "0")...)
		cmd.Args = append([]string{"unshare", "-m", "sh", "-c", hide + ` && exec "$@"`, "sh"}, cmd.Args...)
		cmd.Path = testhost.Tool(t, "unshare")
		var out, errs bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &errs
		_ = cmd.Run() // the exit status is in ProcessState
		r := result{stdout: out.String(), stderr: errs.String(), code: cmd.ProcessState.ExitCode()}
		if r.code == 0 {
			r.record = readRecord(t, file)
		}
		return r
	}
	r := run("--pids-limit", "32")
	if r.code != agent.ExitStartFailed || !strings.Contains(r.stderr, "cannot enforce pids") || !strings.Contains(r.stderr, "--allow-unenforced=pids") {
		t.Errorf("exit %d\n%s", r.code, r.stderr)
	}
	if testhost.Cgroup() == testhost.CgroupV2 {
		// libcontainer checks by itself and cannot be deceived like this.
		t.Log("on v2 no controller can be hidden from one process: a weakened run is tested with rlimits here, with pids on v1")
	} else {
		// The agent exceeds the limit, as the record says it can.
		r = run("--pids-limit", "32", "--allow-unenforced", "pids")
		r.want(t, agent.StatusExited, 0, "40\n")
		if _, said := r.record.Enforced[agent.ControlPids]; said || strings.Join(r.record.Unenforced, " ") != agent.ControlPids {
			t.Errorf("enforced %v, unenforced %v", r.record.Enforced, r.record.Unenforced)
		}
	}
	// Control: with the controller, --allow-unenforced changes nothing.
	r = h.agent([]string{"--pids-limit", "32", "--allow-unenforced", "pids"}, python, "-c", forkUntilRefused, "40", "0")
	if !strings.HasPrefix(r.stdout, "EAGAIN ") || len(r.record.Unenforced) != 0 {
		t.Errorf("control: %q, unenforced %v", r.stdout, r.record.Unenforced)
	}
}
