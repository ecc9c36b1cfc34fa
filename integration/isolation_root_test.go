//go:build root

package integration

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"clove.run/clove/agent"
)

// TestNamespacesAreItsOwn compares every namespace with the host's. The control is a plain
// child process, which shares all of them.
func TestNamespacesAreItsOwn(t *testing.T) {
	h := newHost(t)
	const script = `for n in cgroup ipc mnt net pid user uts; do readlink /proc/self/ns/$n; done`
	outside, err := exec.Command("sh", "-c", script).Output()
	if err != nil {
		t.Fatal(err)
	}
	own, err := os.Readlink("/proc/self/ns/net")
	if err != nil || !strings.Contains(string(outside), own) {
		t.Fatalf("control: a plain child is not in %s: %v", own, err)
	}
	inside := h.sh(script)
	inside.want(t, agent.StatusExited, 0, inside.stdout)
	lines := strings.Fields(inside.stdout)
	if len(lines) != 7 {
		t.Fatalf("namespaces: %v", lines)
	}
	for _, ns := range lines {
		if strings.Contains(string(outside), ns) {
			t.Errorf("%s is shared with the host", ns)
		}
	}
}

// TestTheAgentHoldsNothing reads what the kernel reports of the agent.
func TestTheAgentHoldsNothing(t *testing.T) {
	h := newHost(t)
	const script = `grep -E '^(Cap|NoNewPrivs|Seccomp:|Groups|SigIgn|SigBlk)' /proc/self/status; ls /proc/self/fd | wc -l`
	control, err := exec.Command("sh", "-c", script).Output()
	if err != nil || strings.Contains(string(control), "CapEff:\t0000000000000000") {
		t.Fatalf("control: this test holds no capability itself: %v\n%s", err, control)
	}
	r := h.sh(script)
	for _, want := range []string{
		"CapInh:\t0000000000000000", "CapPrm:\t0000000000000000", "CapEff:\t0000000000000000",
		"CapBnd:\t0000000000000000", "CapAmb:\t0000000000000000", "NoNewPrivs:\t1", "Seccomp:\t2",
		"SigIgn:\t0000000000000000", "SigBlk:\t0000000000000000",
	} {
		if !strings.Contains(r.stdout, want) {
			t.Errorf("missing %q in\n%s", want, r.stdout)
		}
	}
	// 0, 1, 2 and the one that ls itself has open.
	if !strings.HasSuffix(r.stdout, "\n4\n") {
		t.Errorf("inherited descriptors:\n%s", r.stdout)
	}
}

// TestRootInsideIsNobodyOutside looks at the same process from inside and outside.
func TestRootInsideIsNobodyOutside(t *testing.T) {
	h := newHost(t)
	r := h.agent([]string{"--user", "root"}, "sh", "-c", `id -u; cat /proc/self/uid_map`)
	if !strings.HasPrefix(r.stdout, "0\n") {
		t.Errorf("not root inside: %q", r.stdout)
	}
	id := regexp.MustCompile(`0\s+(\d+)\s+65536`).FindStringSubmatch(r.stdout)
	if id == nil || id[1] == "0" {
		t.Fatalf("root inside is root outside: %q", r.stdout)
	}
}

// TestTwoAgentsShareNoHostID runs several at once and compares their ranges.
func TestTwoAgentsShareNoHostID(t *testing.T) {
	h := newHost(t)
	const together = 4
	var agents [together]*running
	for i := range agents {
		agents[i] = h.start(nil, "sh", "-c", "cut -c1-22 /proc/self/uid_map; read wait")
	}
	ids := make([]string, together)
	for i, a := range agents {
		ids[i] = a.line() // it runs, and stays until all of them do
	}
	for _, a := range agents {
		a.wait()
	}
	seen := map[string]bool{}
	for _, id := range ids {
		if id == "" || seen[id] {
			t.Errorf("ranges: %q", ids)
		}
		seen[id] = true
	}
}

// TestProcTellsNothingOfTheHost: what containerd and Docker mask, and more.
func TestProcTellsNothingOfTheHost(t *testing.T) {
	h := newHost(t)
	if text, err := os.ReadFile("/proc/interrupts"); err != nil || len(text) == 0 {
		t.Fatalf("control: the host's /proc/interrupts shows nothing: %v", err)
	}
	for _, path := range []string{"/proc/interrupts", "/proc/kcore", "/proc/keys", "/proc/timer_list"} {
		if _, err := os.Stat(path); err != nil {
			continue // this kernel lacks it
		}
		if r := h.sh("head -c 64 " + path + " 2>/dev/null | wc -c"); strings.TrimSpace(r.stdout) != "0" {
			t.Errorf("%s shows %s bytes", path, r.stdout)
		}
	}
	r := h.agent([]string{"--user", "root"}, "sh", "-c",
		"for f in /proc/sys/kernel/core_pattern /proc/sysrq-trigger /proc/sys/kernel/hostname /sys/kernel/mm/transparent_hugepage/enabled; do (echo x > $f) 2>/dev/null && echo $f; done; true")
	r.want(t, agent.StatusExited, 0, "")
	if left := h.sh("ls -d /proc/[0-9]* | wc -l"); strings.TrimSpace(left.stdout) > "9" {
		t.Errorf("the agent sees %s processes", left.stdout)
	}
}

// TestDevicesAreTheHarmlessOnes lists /dev and tries to make another device.
func TestDevicesAreTheHarmlessOnes(t *testing.T) {
	h := newHost(t)
	// libcontainer adds a link to /proc/kcore, which is masked, if that file exists.
	r := h.sh("cd /dev && ls | grep -vx core")
	r.want(t, agent.StatusExited, 0, "fd\nfull\nmqueue\nnull\nptmx\npts\nrandom\nshm\nstderr\nstdin\nstdout\ntty\nurandom\nzero\n")
	node := filepath.Join(t.TempDir(), "null")
	if out, err := exec.Command("mknod", node, "c", "1", "3").CombinedOutput(); err != nil {
		t.Fatalf("control: root of the host cannot make a device: %v %s", err, out)
	}
	r = h.agent([]string{"--user", "root"}, "sh", "-c", "mknod /tmp/null c 1 3 2>&1 || mknod /dev/sda b 8 0 2>&1; ls /tmp")
	if !strings.Contains(r.stdout, "not permitted") || strings.Contains(r.stdout, "null\n") && !strings.Contains(r.stdout, "mknod") {
		t.Errorf("making devices: %q", r.stdout)
	}
}

// TestNoNetwork: the agent cannot reach a service on the host's loopback.
func TestNoNetwork(t *testing.T) {
	h := newHost(t)
	r := h.sh("cat /proc/net/dev | grep -c :; cat /proc/net/route | wc -l")
	r.want(t, agent.StatusExited, 0, "1\n1\n")
	if control, _ := exec.Command("sh", "-c", "grep -c : /proc/net/dev").Output(); strings.TrimSpace(string(control)) == "0" {
		t.Error("control: the host has no interface at all")
	}
}

// TestStandardStreamsCanBeOpenedByName: as shell scripts do with /dev/stdout.
func TestStandardStreamsCanBeOpenedByName(t *testing.T) {
	h := newHost(t)
	for _, user := range []string{"agent", "root", "7:8"} {
		r := h.agentWith("in", []string{"--user", user}, "sh", "-c", "cat /dev/stdin > /dev/stdout; echo err > /dev/stderr")
		r.want(t, agent.StatusExited, 0, "in")
		if r.stderr != "err\n" {
			t.Errorf("%s: stderr %q", user, r.stderr)
		}
	}
}
