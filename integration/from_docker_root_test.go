//go:build root

package integration

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"clove.run/clove/agent"
)

// TestAddHostIsALineOfHosts: for look-ups of the C library; a line in the file allows no
// connection.
func TestAddHostIsALineOfHosts(t *testing.T) {
	h := newHost(t)
	flags := []string{"--add-host", "db.example:192.0.2.5", "--add-host", "six.example=[2001:db8::5]"}
	for _, network := range []string{"none", "public", "host"} {
		r := h.sh("getent ahosts db.example | cut -d' ' -f1 | uniq; getent ahosts six.example | cut -d' ' -f1 | uniq", append(flags, "--network", network)...)
		r.want(t, agent.StatusExited, 0, "192.0.2.5\n2001:db8::5\n")
	}
	if r := h.sh("getent ahosts db.example"); r.code == 0 {
		t.Errorf("control: without the line the name is known: %s", r.stdout)
	}
	const connect = `import socket; socket.create_connection(("db.example", 80), 5).recv(1)`
	r := h.agent(append(flags, "--allow", "db.example"), "python3", "-c", connect)
	if r.record.Network == nil || r.record.Network.Refused != 1 || !strings.Contains(r.stderr, "refused tcp://192.0.2.5:80") {
		t.Errorf("the line opens its address: %d, %+v, %s", r.code, r.record.Network, r.stderr)
	}
}

// TestCapDropTakesFromRootInside: the control is root inside without the flag, which may
// change owners.
func TestCapDropTakesFromRootInside(t *testing.T) {
	h := newHost(t)
	const script = `grep CapBnd: /proc/self/status | cut -f2; touch /tmp/x; chown 5 /tmp/x 2>/dev/null && echo changed; chmod 600 /tmp/x`
	r := h.sh(script, "--user", "root")
	all, rest, _ := strings.Cut(r.stdout, "\n")
	if r.code != 0 || rest != "changed\n" || strings.Trim(all, "0") == "" {
		t.Fatalf("control: %d, %q, %s", r.code, r.stdout, r.stderr)
	}
	h.sh(script, "--user", "root", "--cap-drop", "ALL").want(t, agent.StatusExited, 0, "0000000000000000\n")
	one := h.sh(script, "--user", "root", "--cap-drop", "chown")
	if left, rest, _ := strings.Cut(one.stdout, "\n"); one.code != 0 || rest != "" || left == all || strings.Trim(left, "0") == "" {
		t.Errorf("without CHOWN: %d, %q, and with it %q; %s", one.code, one.stdout, all, one.stderr)
	}
	// Any other user has no capability in any case.
	h.sh("grep CapBnd: /proc/self/status | cut -f2", "--cap-drop", "SYS_ADMIN").want(t, agent.StatusExited, 0, "0000000000000000\n")
}

// TestStopSignalAsksToEnd: at the deadline, where clove-init sends it, and by clove stop.
func TestStopSignalAsksToEnd(t *testing.T) {
	h := newHost(t)
	const script = `trap 'echo int; exit 3' INT; trap 'echo term; exit 4' TERM; echo up; while :; do sleep 0.1; done`
	for signal, said := range map[string]string{"INT": "int\n", "TERM": "term\n"} {
		flags := []string{"--timeout", "1s", "--stop-signal", signal, "--stop-timeout", "1m"}
		h.sh(script, flags...).want(t, agent.StatusTimeout, agent.ExitTimeout, "up\n"+said)
	}
	d := newCloved(t)
	d.detach("one", script, "--stop-signal", "SIGINT", "--stop-timeout", "1m")
	if up := d.follow("logs", "-f", "one").line(); up != "up" {
		t.Errorf("%q", up)
	}
	d.ok("stop", "one")
	if logged := d.ok("logs", "one"); logged != "up\nint\n" {
		t.Errorf("%q", logged)
	}
}

// TestMountIsVolumeAndTmpfs: --mount has the same effects.
func TestMountIsVolumeAndTmpfs(t *testing.T) {
	h := newHost(t)
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "x"), []byte("of the host\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(folder, 0o777); err != nil {
		t.Fatal(err)
	}
	const script = `cat /data/x; touch /data/new 2>/dev/null && echo written; stat -fc %T /fast; stat -c %a /fast`
	bind := "type=bind,source=" + folder + ",target=/data"
	fast := []string{"--mount", "type=tmpfs,target=/fast,tmpfs-size=1M,tmpfs-mode=700"}
	h.sh(script, append(fast, "--mount", bind+",readonly")...).want(t, agent.StatusExited, 0, "of the host\ntmpfs\n700\n")
	h.sh(script, append(fast, "--mount", bind)...).want(t, agent.StatusExited, 0, "of the host\nwritten\ntmpfs\n700\n")
}

// TestEntrypointHasTheWords: --entrypoint comes before the words after --.
func TestEntrypointHasTheWords(t *testing.T) {
	newHost(t).agent([]string{"--entrypoint", "printf"}, `%s;`, "a b", "c").want(t, agent.StatusExited, 0, "a b;c;")
}

// TestExecAsAnotherUser: such a session never has more rights than the agent.
func TestExecAsAnotherUser(t *testing.T) {
	d := newCloved(t)
	d.detach("agent", "sleep 1000")
	d.detach("root", "sleep 1000", "--user", "root")
	const who = `echo $(id -u):$(id -g) $HOME $(grep CapEff: /proc/self/status | cut -f2)`
	const none = " 0000000000000000\n"
	for _, c := range []struct{ run, user, want string }{
		{"agent", "1234", "1234:1234 /home/agent" + none}, {"agent", "1234:77", "1234:77 /home/agent" + none},
		{"root", "agent", "1000:1000 /home/agent" + none}, {"root", "33:33", "33:33 /home/agent" + none},
	} {
		if got := d.ok("exec", "-u", c.user, c.run, "--", "sh", "-c", who); got != c.want {
			t.Errorf("exec -u %s in %s: %q", c.user, c.run, got)
		}
	}
	if got := d.ok("exec", "-u", "root", "root", "--", "sh", "-c", who); !strings.HasPrefix(got, "0:0 /root ") || strings.HasSuffix(got, none) {
		t.Errorf("control: %q", got)
	}
	for _, user := range []string{"root", "0", "1234:0"} {
		if r := d.clove("exec", "-u", user, "agent", "--", "id"); r.code != agent.ExitStartFailed || r.stdout != "" || !strings.Contains(r.stderr, "may have more rights") {
			t.Errorf("exec -u %s: %d, %q, %q", user, r.code, r.stdout, r.stderr)
		}
	}
}
