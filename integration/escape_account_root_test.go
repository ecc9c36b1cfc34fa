//go:build root

package integration

import (
	"bufio"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"clove.run/clove/agent"
	"clove.run/clove/integration/probe"
)

// pendingOfRoot returns the number of signals that the kernel counts as pending for the host's
// root: in root's processes and in user namespaces that root owns.
func pendingOfRoot(t *testing.T) int {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	match := regexp.MustCompile(`SigQ:\s+(\d+)/`).FindSubmatch(status)
	if match == nil {
		t.Fatalf("no SigQ in\n%s", status)
	}
	count, _ := strconv.Atoi(string(match[1])) // the pattern matches digits only
	return count
}

// TestNothingCountsForTheHostsRoot: the kernel also counts pending signals, inotify instances
// and message queues for the owner of the user namespace. If that were root, one agent could
// use up the shares of root and of all other agents.
func TestNothingCountsForTheHostsRoot(t *testing.T) {
	h := newHost(t)
	program := probeProgram(t)
	const signals, apart = "5000", 2500
	before := pendingOfRoot(t)

	// Control: a user namespace that root makes belongs to root, whichever ids it maps.
	const unused = 0x6fff0000
	control := exec.Command(program, "signals", signals)
	control.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER, Pdeathsig: syscall.SIGKILL,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 1, HostID: unused, Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 1, HostID: unused, Size: 1}},
		Credential:  &syscall.Credential{Uid: 1, Gid: 1, NoSetGroups: true}}
	stdin, _ := control.StdinPipe()   // both fail only if they
	stdout, _ := control.StdoutPipe() // are set already
	if err := control.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := bufio.NewReader(stdout).ReadString('\n'); err != nil {
		t.Fatalf("control: %v", err)
	}
	if counted := pendingOfRoot(t) - before; counted < apart {
		t.Errorf("control: root's account grew by %d only", counted)
	}
	stdin.Close()
	if err := control.Wait(); err != nil {
		t.Fatal(err)
	}

	for _, flags := range [][]string{nil, {"--user=root"}} {
		before := pendingOfRoot(t)
		r := h.start(withProbe(program, flags...), probeInside, "signals", signals)
		if held := attacked(t, []byte(r.line()))["signals"]; !held.OK {
			t.Errorf("%v: the agent cannot have %s signals itself: %+v", flags, signals, held)
		}
		if counted := pendingOfRoot(t) - before; counted > apart {
			t.Errorf("%v: the agent's signals count for the host's root: %d", flags, counted)
		}
		if end := r.wait(); end.code != 0 {
			t.Errorf("%v: exit %d\n%s", flags, end.code, end.stderr)
		}
	}
}

// TestPseudoTerminalsAreCounted: the kernel has one limit for the whole host, for no cgroup
// and no user.
func TestPseudoTerminalsAreCounted(t *testing.T) {
	h := newHost(t)
	const script = `
import os
held = []
try:
    while len(held) < 300: held.append(os.open("/dev/ptmx", os.O_RDWR | os.O_NOCTTY))
except OSError: pass
print(len(held))`
	outside, err := exec.Command("python3", "-c", script).Output()
	if err != nil || string(outside) != "300\n" {
		t.Fatalf("control: outside %q, %v", outside, err)
	}
	for _, flags := range [][]string{nil, {"--user=root"}} {
		h.agent(flags, "python3", "-c", script).want(t, agent.StatusExited, 0, "256\n")
	}
}

// TestNoPrivilegeOfClovesOwnIsInherited: neither the protection from the OOM killer nor the
// right to raise priorities. If root may not lower its score (that needs CAP_SYS_RESOURCE), a
// raised score shows that harmless values are kept.
func TestNoPrivilegeOfClovesOwnIsInherited(t *testing.T) {
	h := newHost(t)
	const prepare = `ulimit -e 40 2>/dev/null; ulimit -r 50 2>/dev/null
	echo -500 2>/dev/null > /proc/self/oom_score_adj || echo 300 > /proc/self/oom_score_adj; exec "$0" "$@"`
	const show = `cat /proc/self/oom_score_adj; grep -E 'nice|realtime p' /proc/self/limits | tr -s ' '`
	plain, err := exec.Command("bash", "-c", prepare, "sh", "-c", show).Output()
	if err != nil {
		t.Fatal(err)
	}
	score, limits := "300\n", "Max nice priority 0 0 \nMax realtime priority 0 0 \n"
	if strings.HasPrefix(string(plain), "-500\n") {
		score = "0\n"
		if !strings.Contains(string(plain), "nice priority 40 40") || !strings.Contains(string(plain), "realtime priority 50 50") {
			t.Errorf("control: the limits are not raised: %s", plain)
		}
	} else if !strings.HasPrefix(string(plain), score) {
		t.Fatalf("control: %s", plain)
	}
	clove := h.command(t.Context(), "run", "--rm", "--", "sh", "-c", show)
	cmd := exec.CommandContext(t.Context(), "bash", append([]string{"-c", prepare}, clove.Args...)...)
	cmd.Env = clove.Env
	if out, err := cmd.Output(); err != nil || string(out) != score+limits {
		t.Errorf("%v, %q, want %q", err, out, score+limits)
	}
}

// TestASetuidProgramRaisesNothing: a set-user-ID program of the host, or one that root inside
// makes, runs with its caller's rights.
func TestASetuidProgramRaisesNothing(t *testing.T) {
	h := newHost(t)
	program := probeProgram(t)
	dir, err := os.MkdirTemp("", "setuid")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	text, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	setuid := dir + "/setuid"
	if err := os.WriteFile(setuid, text, 0o755); err != nil {
		t.Fatal(err)
	}
	for path, mode := range map[string]os.FileMode{dir: 0o755, setuid: 0o755 | os.ModeSetuid} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	control := exec.Command(setuid, "setuid-exec", setuid)
	control.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	output, err := control.Output()
	if err != nil || !attacked(t, output)["ids"].OK {
		t.Fatalf("control: %v %s", err, output)
	}
	const made = `cp /probe /tmp/made && chmod 4755 /tmp/made && exec /probe setuid-exec /tmp/made`
	for _, row := range []struct {
		name    string
		flags   []string
		command []string
	}{
		{"bound from the host", []string{"-v", dir + ":/bound"}, []string{probeInside, "setuid-exec", "/bound/setuid"}},
		{"in the workspace", []string{"--workspace", dir}, []string{probeInside, "setuid-exec", "/workspace/setuid"}},
		{"made by the agent", nil, []string{"sh", "-c", made}},
		{"made by root inside for its own user", []string{"--user=root"}, []string{"python3", "-c", `
import os, shutil
shutil.copy("/probe", "/tmp/made"); os.chmod("/tmp/made", 0o4755)
os.setgid(1000); os.setuid(1000)
os.execv("/probe", ["/probe", "setuid-exec", "/tmp/made"])`}},
	} {
		r := h.agent(withProbe(program, row.flags...), row.command...)
		var result probe.Result
		if results := attacked(t, []byte(r.stdout)); len(results) == 1 {
			result = results["ids"]
		}
		if result.Errno != "EPERM" {
			t.Errorf("%s: %+v\n%s", row.name, result, r.stderr)
		}
	}
}
