//go:build root

package integration

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/internal/testhost"
)

// childrenNamed returns the processes of a name that a process has started.
func childrenNamed(t *testing.T, parent int, name string) (pids []int) {
	t.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range stats {
		text, _ := os.ReadFile(path) // it may have ended
		var pid, ppid int
		var command, state string
		if n, _ := fmt.Sscanf(string(text), "%d %s %s %d", &pid, &command, &state, &ppid); n == 4 && ppid == parent && command == "("+name+")" {
			pids = append(pids, pid)
		}
	}
	return pids
}

// gateOf finds the gate among the children of a running clove.
func gateOf(t *testing.T, clove int) int {
	t.Helper()
	gates := childrenNamed(t, clove, "clove-gate")
	if len(gates) == 0 {
		t.Fatal("clove has no gate")
	}
	return gates[0]
}

// A signal of the terminal goes to the whole process group of clove. It must not end the
// gate: the agent would be without a network while it stops.
func TestTheGateIsOutOfTheTerminalsReach(t *testing.T) {
	h := newHost(t)
	r := h.start([]string{"--network=allowlist", "--allow=a.example.com"}, "sh", "-c", "echo begun; read end")
	if line := r.line(); line != "begun" {
		t.Fatal(line)
	}
	clove := r.cmd.Process.Pid
	of := func(pid int) int {
		group, err := unix.Getpgid(pid)
		if err != nil {
			t.Fatal(err)
		}
		return group
	}
	if group := of(gateOf(t, clove)); group == of(clove) {
		t.Errorf("both are in the process group %d", group)
	}
	r.stdin.Close()
	r.wait()
}

// step has a steps agent fetch a URL, and reports whether a server was reached.
func step(r *running, url string) bool {
	r.h.t.Helper()
	fmt.Fprintln(r.stdin, url)
	return strings.Contains(r.line(), reached)
}

const siteURL = "http://api.example.com/"

// steps starts an agent that fetches URLs on request.
func (h *host) steps(flags ...string) *running {
	h.t.Helper()
	return h.start(self(append([]string{"--allow=api.example.com"}, flags...)...), agentInside, agentWord, "steps")
}

// TestTheGateIsKilled: the network is gone, and the run continues and says so.
func TestTheGateIsKilled(t *testing.T) {
	h := newHost(t)
	n := newInternet(t, h)
	r := h.steps("--allow=" + lanAddress)
	if !step(r, siteURL) {
		t.Fatalf("control: %s", &r.stderr)
	}
	gate := gateOf(t, r.cmd.Process.Pid)
	if err := unix.Kill(gate, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	awaitExit(t, gate)
	c := n.capture(t)
	for _, url := range []string{siteURL, "http://" + siteAddress + "/", "http://" + lanAddress + "/", "http://" + evilAddress + "/"} {
		if step(r, url) {
			t.Errorf("%s is reached without a gate", url)
		}
	}
	c.onlyTo()
	end := r.wait()
	if end.code != 0 || end.record.Network == nil || end.record.Network.Lost == "" || !strings.Contains(end.stderr, "gate") {
		t.Errorf("exit %d, %+v\n%s", end.code, end.record.Network, end.stderr)
	}
}

// TestTheKillOfCloveTakesTheGateAlong: the gate's listeners are closed, too, and the next
// command cleans up.
func TestTheKillOfCloveTakesTheGateAlong(t *testing.T) {
	h := newHost(t)
	n := newInternet(t, h)
	const published = ownAddress + ":9090"
	r := h.keep("doomed", append(self(), "--allow=api.example.com", "-p="+published+":8080"), agentInside, agentWord, "listen", ":8080")
	if line := r.line(); line != "up" {
		t.Fatalf("%q\n%s", line, &r.stderr)
	}
	if said, err := n.call(n.there, published); err != nil || !strings.Contains(said, reached) {
		t.Fatalf("control: %q, %v", said, err)
	}
	gate, init := gateOf(t, r.cmd.Process.Pid), h.inspect("doomed").PID
	r.cmd.Process.Kill()
	r.cmd.Wait()
	awaitExit(t, gate)
	awaitExit(t, init)
	if said, err := n.call(n.there, published); err == nil {
		t.Errorf("the published port still answers: %q", said)
	}
	if left := h.clove("check"); left.code != 1 || !strings.Contains(left.stdout, "doomed") {
		t.Errorf("control: check finds nothing: exit %d\n%s%s", left.code, left.stdout, left.stderr)
	}
	if gc := h.clove("gc"); gc.code != 0 {
		t.Errorf("gc: exit %d\n%s%s", gc.code, gc.stdout, gc.stderr)
	}
	if check := h.clove("check"); check.code != 0 {
		t.Errorf("left after gc:\n%s%s", check.stdout, check.stderr)
	}
	again := h.start(append(self(), "-p="+published+":8080"), agentInside, agentWord, "listen", ":8080")
	if line := again.line(); line != "up" {
		t.Errorf("the port is not free: %q\n%s", line, &again.stderr)
	}
	again.wait()
}

// TestKilledAtRandomMomentsWithANetwork: no gate and no listener is left. The control is that
// runs were killed before their end.
func TestKilledAtRandomMomentsWithANetwork(t *testing.T) {
	h := newHost(t)
	newInternet(t, h)
	rounds, killed := testhost.Sample(60, 20, 8), 0
	flags := []string{"--allow=api.example.com", "-p=9090:80"}
	run := append(append([]string{"run", "--rm"}, flags...), "--", "true")
	h.clove(run...) // makes the template for layers
	at := h.moments(3, flags...)
	for range rounds {
		if at.kills(true) {
			killed++
		}
	}
	if gc := h.clove("gc"); gc.code != 0 {
		t.Errorf("gc: exit %d\n%s%s", gc.code, gc.stdout, gc.stderr)
	}
	if killed < rounds/4 {
		t.Errorf("control: %d of %d were killed", killed, rounds)
	}
	if r := h.clove(run...); r.code != 0 {
		t.Errorf("the published port is not free: %s", r.stderr)
	}
}

// TestEveryRefusalIsVisible: once on stderr, with a count in the record, and with all other
// decisions in the log.
func TestEveryRefusalIsVisible(t *testing.T) {
	h := newHost(t)
	newInternet(t, h)
	log := filepath.Join(t.TempDir(), "network.log")
	refused := web("evil.example.net", "evil.example.net", evilAddress, lanAddress)
	for i := range refused {
		refused[i].Name += strconv.Itoa(i)
	}
	r := h.agentWith(string(encoded(t, append(refused, web("api.example.com")...))),
		self("--allow=api.example.com", "--deny=10.0.0.0/8", "--network-log="+log, "--name=seen"), agentInside, agentWord, "attempt")
	for _, target := range []string{"evil.example.net", evilAddress, lanAddress} {
		told, lines := int64(0), 0
		for _, d := range r.record.Denials {
			if d.Kind == "network" && strings.Contains(d.Target, target) {
				told += d.Count
			}
		}
		for line := range strings.Lines(r.stderr) {
			if strings.Contains(line, target) {
				lines++
			}
		}
		if told == 0 || lines != 1 {
			t.Errorf("%s: %d in the record, %d lines on stderr\n%+v\n%s", target, told, lines, r.record.Denials, r.stderr)
		}
	}
	verdicts := verdictsIn(t, log)
	if verdicts["allowed"] == 0 || verdicts["denied"] < 4 {
		t.Errorf("the log tells of %v", verdicts)
	}
}

// verdictsIn counts the decisions in a log. Each must have a time, an agent and a verdict.
func verdictsIn(t *testing.T, log string) map[string]int {
	t.Helper()
	file, err := os.Open(log)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	verdicts := map[string]int{}
	for lines := bufio.NewScanner(file); lines.Scan(); {
		var decision map[string]any
		if err := json.Unmarshal(lines.Bytes(), &decision); err != nil {
			t.Fatalf("%v: %s", err, lines.Text())
		}
		verdicts[fmt.Sprint(decision["verdict"])]++
		for _, field := range []string{"time", "agent", "verdict"} {
			if decision[field] == nil {
				t.Errorf("no %s in %s", field, lines.Text())
			}
		}
	}
	return verdicts
}

// TestRulesAreExplainedOffline: the answer needs no packet.
func TestRulesAreExplainedOffline(t *testing.T) {
	h := newHost(t)
	n := newInternet(t, h)
	c := n.capture(t)
	rules := []string{"--allow=api.example.com", "--deny=10.0.0.0/8"}
	explained := h.clove(append(append([]string{"run"}, rules...), "--explain-network", "--", "true")...)
	for _, want := range []string{"api.example.com", "10.0.0.0/8", "--allow", "--deny"} {
		if !strings.Contains(explained.stdout, want) {
			t.Errorf("--explain-network does not say %q:\n%s%s", want, explained.stdout, explained.stderr)
		}
	}
	for target, want := range map[string]int{"api.example.com:443": 0, "evil.example.net": 1, "10.1.2.3:80": 1} {
		why := h.clove(append([]string{"why", target}, rules...)...)
		host, _, _ := strings.Cut(target, ":")
		if why.code != want || !strings.Contains(why.stdout, host) {
			t.Errorf("why %s: exit %d, %s%s", target, why.code, why.stdout, why.stderr)
		}
	}
	c.onlyTo()
}

func TestTheHostModeIsToldAsWeak(t *testing.T) {
	h := newHost(t)
	n := newInternet(t, h)
	r := n.passes(t, []string{"--network=host"}, web("api.example.com", lanAddress, metadataAddress, "127.0.0.1"))
	weak := fmt.Sprint(r.record.Unenforced, r.record.Enforced)
	if !strings.Contains(weak, agent.ControlNetwork) && !strings.Contains(weak, agent.ControlEgress) || len(r.record.Unenforced) == 0 {
		t.Errorf("the record says %s", weak)
	}
}

// call sends a request to a TCP server from inside or outside.
func (n *internet) call(from interface{ Do(func() error) error }, address string) (said string, err error) {
	var conn net.Conn
	err = from.Do(func() (err error) { conn, err = net.DialTimeout("tcp", address, attemptTime); return err })
	if err != nil {
		return "", err
	}
	defer conn.Close()
	return converse(conn, testhost.Patience(attemptTime), []byte("hello\n"))
}
