//go:build root

package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"clove.run/clove/internal/initproto"
	"clove.run/clove/internal/testhost"
)

const victimName = "clove-init-test-victim"

// rootCaps are what root inside has; a test of runtime compares them.
var rootCaps = []string{"CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FOWNER", "CAP_FSETID", "CAP_KILL", "CAP_SETFCAP", "CAP_SETGID", "CAP_SETUID"}

// victim is a second stage up to VICTIM_STEP, as it is with fs.suid_dumpable=1: a change of ids
// makes it dumpable. With VICTIM_OPEN the step against that is left out.
func victim() error {
	runtime.LockOSThread()
	orders := &initproto.Orders{Dir: "/", UID: agentUID, GID: agentUID}
	if os.Getenv("VICTIM_ROOT") != "" {
		orders.UID, orders.GID, orders.Caps = 0, 0, rootCaps
	}
	me := &initproto.Orders{UID: initUID, GID: initUID, Caps: append(slices.Clone(orders.Caps), initCaps...)}
	for _, do := range []func(*initproto.Orders) error{dropBounding, setGroups, setGID, setUID, setCapabilities} {
		if err := do(me); err != nil {
			return err
		}
	}
	if err := notDumpable(); err != nil {
		return err
	}
	for _, p := range preparations[2:] { // after those for a terminal
		if p.name == "dumpable" && os.Getenv("VICTIM_OPEN") != "" {
			continue
		}
		if err := p.do(orders); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
		if p.name == "gid" || p.name == "uid" {
			if err := unix.Prctl(unix.PR_SET_DUMPABLE, 1, 0, 0, 0); err != nil {
				return err
			}
		}
		if p.name == os.Getenv("VICTIM_STEP") {
			fmt.Println("ready")
			_, _ = os.Stdin.Read(make([]byte, 1))
			os.Exit(0)
		}
	}
	return errors.New("no such step")
}

// startVictim returns once the victim has come to the step.
func startVictim(t *testing.T, step string, env ...string) (pid int) {
	t.Helper()
	ids := []syscall.SysProcIDMap{{ContainerID: 0, HostID: testHostID, Size: testIDs}}
	v := &exec.Cmd{Path: "/proc/self/exe", Args: []string{victimName}, Env: append(env, "VICTIM_STEP="+step), Stderr: os.Stderr,
		SysProcAttr: &syscall.SysProcAttr{UidMappings: ids, GidMappings: ids, GidMappingsEnableSetgroups: true,
			Credential: &syscall.Credential{}, Cloneflags: unix.CLONE_NEWUSER}}
	stdin, err := v.StdinPipe()
	check(t, err)
	stdout, err := v.StdoutPipe()
	check(t, err)
	check(t, v.Start())
	t.Cleanup(func() { stdin.Close(); _ = v.Wait() })
	if line, err := bufio.NewReader(stdout).ReadString('\n'); err != nil || line != "ready\n" {
		t.Fatalf("%q, %v", line, err)
	}
	return v.Process.Pid
}

// tracers are processes of the agent, as arguments of setpriv(1): root inside has its
// capabilities, and can take any id.
func tracers() map[string][]string {
	held := strings.ToLower(strings.ReplaceAll(strings.Join(rootCaps, ",+"), "CAP_", ""))
	root := func(id int) []string {
		return []string{fmt.Sprint("--reuid=", id), fmt.Sprint("--regid=", id), "--clear-groups",
			"--bounding-set=-all,+" + held, "--inh-caps=-all,+" + held, "--ambient-caps=-all,+" + held}
	}
	return map[string][]string{
		"agent": {fmt.Sprint("--reuid=", agentUID), fmt.Sprint("--regid=", agentUID), "--clear-groups", "--bounding-set=-all", "--inh-caps=-all"},
		"root":  root(0), "root with the agent's ids": root(agentUID), "root with clove-init's ids": root(initUID),
	}
}

// attack tries to trace the process, and to read and write its memory.
func attack(t *testing.T, pid int, tracer []string) string {
	t.Helper()
	script := fmt.Sprintf(`print "seize " if syscall(%d, %d, %d, 0, 0) == 0; print "memory " if open M, "+<", "/proc/%[3]d/mem"; `+
		`$b = "x"; $here = pack("PQ", $b, 1); $there = pack("QQ", 0, 1); syscall(%d, %[3]d, $here, 1, $there, 1, 0); `+
		`print "copy " if $!{EFAULT}; print "environ" if open E, "/proc/%[3]d/environ"`,
		unix.SYS_PTRACE, unix.PTRACE_SEIZE, pid, unix.SYS_PROCESS_VM_READV)
	arguments := append([]string{"--user=" + fmt.Sprintf("/proc/%d/ns/user", pid), "--setuid=0", "--setgid=0", testhost.Tool(t, "setpriv")}, tracer...)
	out, err := exec.Command(testhost.Tool(t, "nsenter"), append(arguments, testhost.Tool(t, "perl"), "-e", script)...).CombinedOutput()
	check(t, err)
	return string(out)
}

// TestStagesCannotBeTraced: no process of an agent may trace a second stage, from its first
// step to its last. The control is a stage without the step after the change of ids.
func TestStagesCannotBeTraced(t *testing.T) {
	testhost.Root(t)
	testhost.NoResidue(t)
	for _, env := range []string{"VICTIM_ROOT=", "VICTIM_ROOT=1"} {
		for _, p := range preparations[2:] {
			pid := startVictim(t, p.name, env)
			for name, tracer := range tracers() {
				if got := attack(t, pid, tracer); got != "" {
					t.Errorf("%s: after %s, %s may: %s", env, p.name, name, got)
				}
			}
		}
	}
	const all = "seize memory copy environ"
	for env, name := range map[string]string{"VICTIM_ROOT=": "agent", "VICTIM_ROOT=1": "root"} {
		if got := attack(t, startVictim(t, "descriptors", env, "VICTIM_OPEN=1"), tracers()[name]); got != all {
			t.Errorf("control: %s may: %q", name, got)
		}
	}
}
