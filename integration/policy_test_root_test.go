//go:build root

package integration

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"clove.run/clove/policies/expect"
)

// tested runs clove policy test on these entries, with and without a sandbox. A policy is a
// level, or the text of a document.
func (h *host) tested(policy, entries string) (decided, live []expect.Result) {
	h.t.Helper()
	dir := h.t.TempDir()
	if h.user != nil {
		dir = userDir(h.t, nil)
	}
	files := map[string]string{}
	if strings.Contains(policy, "\n") {
		files["own.yaml"], policy = policy, "./own.yaml"
	}
	files["expect.yaml"] = "version: 1\npolicy: " + policy + "\nexpect:\n" + entries
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			h.t.Fatal(err)
		}
	}
	for _, row := range []struct {
		flags []string
		into  *[]expect.Result
	}{{nil, &decided}, {[]string{"--live"}, &live}} {
		r := h.clove(append(append([]string{"policy", "test", "--json"}, row.flags...), filepath.Join(dir, "expect.yaml"))...)
		if err := json.Unmarshal([]byte(r.stdout), row.into); err != nil {
			h.t.Fatalf("%v: status %d\n%s%s", err, r.code, r.stdout, r.stderr)
		}
	}
	return decided, live
}

// allOK checks that every entry is as expected. The control is one that expects the opposite.
func allOK(t *testing.T, name string, results []expect.Result, entries int) {
	t.Helper()
	if len(results) != entries {
		t.Errorf("%s: %d results of %d entries", name, len(results), entries)
	}
	for _, r := range results {
		if !r.OK || r.Got == expect.Unknown {
			t.Errorf("%s: %s %s: %s, want %s: %s", name, r.Action, r.What, r.Got, r.Is, r.By)
		}
	}
}

const standardEntries = `
- {read: /usr/bin/env, is: allow}
- {exec: /usr/bin/env, is: allow}
- {write: /usr/bin/env, is: deny}
- {write: /usr/new, is: deny}
- {read: /root/.bashrc, is: deny}
- {read: /etc/shadow, is: deny}
- {read: /var/log/auth.log, is: deny}
- {read: /etc/passwd, is: allow}
- {write: /workspace/a/b, is: allow}
- {write: /home/agent/a, is: allow}
- {write: /tmp/a, is: allow}
- {write: /dev/shm/a, is: allow}
- {write: /proc/sys/kernel/panic, is: deny}
- {syscall: getpid, is: allow}
- {syscall: exit_group, is: allow}
- {syscall: pause, is: allow}
- {syscall: mount, is: deny}
- {syscall: bpf, is: deny}
- {syscall: socket, args: [2, 1], is: allow}
- {connect: "10.255.255.1:443", is: deny}
- {connect: "127.0.0.1:9", is: deny}
- {tool: fetch, is: deny}
`

// A sandbox under the standard level is as the decisions say, and a wrong expectation is
// found by both.
func TestPolicyTestAgreesWithASandbox(t *testing.T) {
	for name, newOne := range map[string]func(*testing.T) *host{
		"without cloved": newHost,
		"with cloved":    func(t *testing.T) *host { return newCloved(t).host },
	} {
		t.Run(name, func(t *testing.T) {
			h := newOne(t)
			const entries = standardEntries
			decided, live := h.tested("standard", entries)
			n := strings.Count(entries, "- {")
			allOK(t, "decided", decided, n)
			allOK(t, "live", live, n)
			decided, live = h.tested("standard", "- {syscall: mount, is: allow}\n- {read: /etc/shadow, is: allow}\n- {write: /tmp/a, is: deny}\n")
			for _, r := range append(decided, live...) {
				if r.OK {
					t.Errorf("control: %s %s is %s", r.Action, r.What, r.Got)
				}
			}
		})
	}
}

// Narrower and wider documents agree, too.
func TestPolicyTestOfDocuments(t *testing.T) {
	h := newHost(t)
	for name, row := range map[string]struct{ policy, entries string }{
		"readonly": {"readonly", "- {write: /tmp/a, is: allow}\n- {write: /workspace/a, is: deny}\n- {write: /dev/shm/a, is: allow}\n- {syscall: socket, args: [2, 1], is: deny}\n- {connect: 10.0.0.1, is: deny}\n"},
		"minimal":  {"minimal", "- {read: /usr/bin/env, is: allow}\n- {write: /tmp/a, is: allow}\n- {write: /usr/a, is: deny}\n- {syscall: getpid, is: allow}\n- {syscall: fork, is: deny}\n- {syscall: ppoll, is: allow}\n- {syscall: socket, args: [1, 1], is: deny}\n- {connect: 10.0.0.1, is: deny}\n"},
		"root inside": {"version: 1\nname: own\nextends: standard\nwiden: {user: it installs}\nuser: root\n",
			"- {write: /usr/new, is: allow}\n- {write: /root/new, is: allow}\n- {read: /root/.ssh/id_rsa, is: deny}\n- {exec: /usr/bin/env, is: allow}\n"},
		"grants": {"version: 1\nname: own\nextends: standard\nwiden: {grants: it fetches}\ngrants: [\"tool:fetch*\"]\n",
			"- {tool: fetch2, is: allow}\n- {tool: send, is: deny}\n"},
	} {
		decided, live := h.tested(row.policy, row.entries)
		allOK(t, name+", decided", decided, strings.Count(row.entries, "- {"))
		allOK(t, name+", live", live, strings.Count(row.entries, "- {"))
	}
}

// A connection to a port of the host's own loopback is allowed by name of the port, and no
// other one is: the gate's record decides.
func TestPolicyTestConnects(t *testing.T) {
	h := newHost(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	reached := make(chan struct{}, 8)
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			reached <- struct{}{}
			conn.Close()
		}
	}()
	port := listener.Addr().(*net.TCPAddr).Port
	policy := fmt.Sprintf("version: 1\nname: own\nextends: standard\nwiden: {network: it asks a database}\nnetwork: {mode: allowlist, allow: [api.example.com], host_ports: [%d]}\n", port)
	entries := fmt.Sprintf("- {connect: \"127.0.0.1:%d\", is: allow}\n- {connect: \"10.255.255.1:443\", is: deny}\n- {connect: other.example.com, is: deny}\n- {connect: \"169.254.169.254:80\", is: deny}\n- {connect: \"udp://10.255.255.1:5000\", is: deny}\n", port)
	decided, live := h.tested(policy, entries)
	allOK(t, "decided", decided, 5)
	allOK(t, "live", live, 5)
	select {
	case <-reached:
	default:
		t.Error("nothing reached the host's port")
	}
}

// Nothing of a test is left: neither a run, nor what the probe asked to write in a directory
// of the host's.
func TestPolicyTestLeavesNothing(t *testing.T) {
	h := newHost(t)
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o777|os.ModeSticky); err != nil {
		t.Fatal(err)
	}
	policy := "version: 1\nname: own\nextends: standard\nwiden: {files: it writes there}\nfiles: {volumes: [\"" + dir + ":/data\"]}\n"
	const entries = "- {write: /data/new/deep, is: allow}\n- {read: /data, is: allow}\n"
	decided, live := h.tested(policy, entries)
	allOK(t, "decided", decided, 2)
	allOK(t, "live", live, 2)
	var stat unix.Stat_t
	if err := unix.Stat(filepath.Join(dir, "new"), &stat); err != unix.ENOENT {
		t.Errorf("the probe made a directory of the host's: %v", err)
	}
	if r := h.clove("ps", "-a", "-q"); strings.TrimSpace(r.stdout) != "" {
		t.Errorf("runs are left: %s", r.stdout)
	}
}
