//go:build root

package integration

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/agents"
	"clove.run/clove/api/methods"
	"clove.run/clove/internal/testhost"
)

// A run without a part in what agents share has no socket, no directory, no variable and no
// process for it. The control is one beside it that has, without a network in both.
func TestWithoutAGrantNothingIsThere(t *testing.T) {
	h := newHost(t)
	const script = `ls -d /run/clove /run/clove/agent.sock 2>/dev/null | tr '\n' ' '; echo "${CLOVE_AGENT_SOCKET-}"; read end`
	for _, row := range []struct {
		flags []string
		want  string
		gates int
	}{
		{nil, "", 0},
		{[]string{"--budget=cpu_ms=1000000"}, "", 0},
		{[]string{"--agent-socket"}, "/run/clove /run/clove/agent.sock /run/clove/agent.sock", 1},
		{[]string{"--grant=tool:fetch"}, "/run/clove /run/clove/agent.sock /run/clove/agent.sock", 1},
	} {
		r := h.start(append([]string{"--network=none"}, row.flags...), "sh", "-c", script)
		if line := r.line(); line != row.want {
			t.Errorf("%q: %q, want %q", row.flags, line, row.want)
		}
		if n := len(childrenNamed(t, r.cmd.Process.Pid, "clove-gate")); n != row.gates {
			t.Errorf("%q: %d gates, want %d", row.flags, n, row.gates)
		}
		r.wait()
	}
}

// nameIn is the name of the agent in an answer to whoami.
func nameIn(line string) string {
	var m struct{ Result api.AgentResult }
	if json.Unmarshal([]byte(line), &m) != nil {
		return ""
	}
	return m.Result.Name
}

// A connection to one agent's socket that another agent gets through a shared folder ends
// with the other's first byte. Both have connections of their own that work.
func TestAConnectionOfAnotherAgent(t *testing.T) {
	h := newHost(t)
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	for parent := filepath.Dir(dir); parent != os.TempDir(); parent = filepath.Dir(parent) {
		if err := os.Chmod(parent, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	shared := "-v=" + dir + ":/shared"
	giver := h.start(self("--name=giver", "--agent-socket", shared), agentInside, agentWord, "hand", "/shared/s")
	if line := giver.line(); nameIn(line) != "giver" {
		t.Fatalf("control: %q\n%s", line, &giver.stderr)
	}
	taker := h.start(self("--name=taker", "--agent-socket", shared), agentInside, agentWord, "take", "/shared/s")
	if line := taker.line(); !strings.HasPrefix(line, "gone") {
		t.Errorf("a foreign connection answers: %q\n%s", line, &taker.stderr)
	}
	if line := taker.line(); nameIn(line) != "taker" {
		t.Errorf("control: its own: %q\n%s", line, &taker.stderr)
	}
	if line := giver.line(); !strings.HasPrefix(line, "gone") {
		t.Errorf("the connection goes on: %q", line)
	}
	taker.wait()
	giver.wait()
}

// Root inside cannot send with an id that is not of its sandbox. The control is root
// outside, which can.
func TestASenderOutsideOfTheSandbox(t *testing.T) {
	h := newHost(t)
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(path, agentWord, "forge").CombinedOutput()
	if want := "pair 1 0\npair 70000 0\npair 4000000000 0\n"; err != nil || string(out) != want {
		t.Fatalf("control: %q, %v", out, err)
	}
	r := h.agent(self("--user=root", "--agent-socket"), agentInside, agentWord, "forge")
	want := fmt.Sprintf("pair 1 0\npair 70000 %d\npair 4000000000 %d\nsocket 70000 %d\nsocket 4000000000 %d\n", unix.EINVAL, unix.EINVAL, unix.EINVAL, unix.EINVAL)
	r.want(t, agent.StatusExited, 0, want)
}

// Root inside can neither remove, rename nor cover its socket, and reaches it afterwards.
// The control is the same in a folder that it may write.
func TestTheSocketsPathStays(t *testing.T) {
	h := newHost(t)
	const script = `
cd "$1"
tries() { "$@" 2>/dev/null && echo "$1 yes" || echo "$1 no"; }
tries rm -f agent.sock
tries touch new
tries mv agent.sock other
tries ln -sf /dev/null agent.sock
tries chmod 0 .
`
	const cover = `mount -t tmpfs none /run/clove 2>/dev/null && echo covered; mount --bind /tmp /run/clove 2>/dev/null && echo covered; mv /run/clove /run/other 2>/dev/null && echo moved; `
	control := h.sh(`mkdir /tmp/own && touch /tmp/own/agent.sock && set -- /tmp/own; `+strings.Replace(script, "tries mv", "touch agent.sock; tries mv", 1), "--user=root", "--agent-socket")
	control.want(t, agent.StatusExited, 0, "rm yes\ntouch yes\nmv yes\nln yes\nchmod yes\n")
	for _, user := range []string{"--user=root", "--user=agent"} {
		r := h.agentWith(whoami+"\n", self(user, "--name=stays", "--agent-socket"), "sh", "-c", "set -- /run/clove; "+script+"cd /; "+cover+"exec "+agentInside+" "+agentWord+" calls")
		before, after, found := strings.Cut(r.stdout, "up\n")
		if before != "rm no\ntouch no\nmv no\nln no\nchmod no\n" || !found || nameIn(after) != "stays" {
			t.Errorf("%s: %q\n%s", user, r.stdout, r.stderr)
		}
	}
}

// A process of clove exec is the same agent: it finds the socket, and spends from the same
// budget.
func TestExecIsTheSameAgent(t *testing.T) {
	d := newCloved(t)
	d.detach("box", "sleep 1000", self("--budget=reviews=100")...)
	for i := range 3 {
		r := d.cloveWith(`{"jsonrpc":"2.0","id":1,"method":"budget.charge","params":{"amounts":{"reviews":5}}}`+"\n"+whoami+"\n",
			"exec", "-i", "box", "--", agentInside, agentWord, "calls")
		lines := strings.Split(strings.TrimSpace(r.stdout), "\n")
		if r.code != 0 || len(lines) != 3 || nameIn(lines[2]) != "box" || !strings.Contains(lines[1], fmt.Sprintf(`"used":%d`, 5*(i+1))) {
			t.Errorf("exec %d: %d, %q, %s", i, r.code, lines, r.stderr)
		}
	}
}

// The gate is killed: the socket answers no more, and the run goes on and says so.
func TestTheGateOfTheSocketIsKilled(t *testing.T) {
	h := newHost(t)
	r := h.calls("--name=gateless", "--agent-socket")
	if m := r.call(agents.AgentGet.Name, "{}"); !bytes.Contains(m.Result, []byte("gateless")) {
		t.Fatalf("control: %s", m.Error)
	}
	gate := gateOf(t, r.cmd.Process.Pid)
	if err := unix.Kill(gate, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	awaitExit(t, gate)
	for range 2 {
		r.request(agents.AgentGet.Name, "{}")
		if line := r.line(); !strings.HasPrefix(line, "gone") {
			t.Errorf("%q", line)
		}
	}
	if end := r.wait(); end.code != 0 || !strings.Contains(end.stderr, "gate") {
		t.Errorf("exit %d\n%s", end.code, end.stderr)
	}
}

// A net grant opens the network of an agent that had none, and its end cuts the connection
// that it allowed. The control is the same target before and after.
func TestANetGrantOpensAndCuts(t *testing.T) {
	d, _ := newClovedWithInternet(t)
	r := d.start(self("--name=net", "--network=none", "--agent-socket"), agentInside, agentWord, "steps")
	if step(r, siteURL) {
		t.Fatal("control: it is reached without a grant")
	}
	var given api.GrantResult
	d.api(methods.GrantGive.Name, map[string]any{"run": "net", "grant": "net:api.example.com:80"}, &given)
	if !step(r, siteURL) {
		t.Errorf("it is not reached with a grant\n%s", &r.stderr)
	}
	d.api(agents.GrantRevoke.Name, map[string]any{"run": "net", "id": given.Grant.ID}, nil)
	if step(r, siteURL) {
		t.Error("it is reached without a grant again")
	}
	r.wait()
	const address = otherAddress + ":22"
	held := d.start(self("--name=held", "--network=none", "--grant=net:"+address), agentInside, agentWord, "hold", address)
	if line := held.line(); line != "served" {
		t.Fatalf("%q\n%s", line, &held.stderr)
	}
	var list api.GrantListResult
	d.api(agents.GrantList.Name, map[string]any{"run": "held"}, &list)
	d.api(agents.GrantRevoke.Name, map[string]any{"run": "held", "id": list.Grants[0].ID}, nil)
	if line := held.line(); line != "cut" {
		t.Errorf("%q", line)
	}
	held.wait()
}

// A net grant that expires while cloved is away closes all the same. The control is the same
// target before the expiry, also without cloved.
func TestANetGrantExpiresWithoutCloved(t *testing.T) {
	d, _ := newClovedWithInternet(t)
	r := d.start(self("--name=net", "--network=none", "--agent-socket"), agentInside, agentWord, "steps")
	if step(r, siteURL) {
		t.Fatal("control: it is reached without a grant")
	}
	const lasts = 4 * time.Second
	d.api(methods.GrantGive.Name, map[string]any{"run": "net", "grant": "net:api.example.com:80", "expires": time.Now().Add(testhost.Patience(lasts))}, nil)
	d.stop(unix.SIGKILL)
	if !step(r, siteURL) {
		t.Errorf("control: it is not reached with a grant\n%s", &r.stderr)
	}
	until(t, "it is closed", func() bool { return !step(r, siteURL) })
	d.serve()
	if step(r, siteURL) {
		t.Error("the next cloved opens it again")
	}
	r.wait()
}
