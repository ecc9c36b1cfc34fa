//go:build root

package integration

import (
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
)

// TestLowPortsAreTheAgents: any agent serves port 80 of a network of its own, and it is reached
// from the host. The gate's port is refused, and reported. The control is the host's network, where
// the same user has no such port.
func TestLowPortsAreTheAgents(t *testing.T) {
	h := newHost(t)
	n := newInternet(t, h)
	for _, flags := range [][]string{nil, {"--user=root"}, {"--allow=api.example.com"}} {
		r := h.start(self(append(flags, "-p=9001:80")...), agentInside, agentWord, "listen", ":80")
		if line := r.line(); line != "up" {
			t.Fatalf("%v: %q\n%s", flags, line, &r.stderr)
		}
		if said, err := n.call(n.here, "127.0.0.1:9001"); err != nil || !strings.Contains(said, reached) {
			t.Errorf("%v: %q, %v", flags, said, err)
		}
		r.wait()
	}
	const bind = `use Socket; for (@ARGV) { socket(S, PF_INET, SOCK_STREAM, 0); print bind(S, sockaddr_in($_, INADDR_LOOPBACK)) ? "ok" : $!+0, " " }`
	command := []string{"/usr/bin/perl", "-e", bind, "1", "2", "53", "443"}
	own := h.agent([]string{"--allow=api.example.com"}, command...)
	own.want(t, agent.StatusExited, 0, "13 ok ok ok ")
	if d := denialOf(own.record, agent.DenialCapability, "CAP_NET_BIND_SERVICE"); d == nil || d.Count != 1 {
		t.Errorf("%+v", own.record.Denials)
	}
	hosts := h.agent([]string{"--network=host"}, command...)
	hosts.want(t, agent.StatusExited, 0, "13 13 13 13 ")
	if d := denialOf(hosts.record, agent.DenialCapability, "CAP_NET_BIND_SERVICE"); d == nil || d.Count != 4 {
		t.Errorf("%+v", hosts.record.Denials)
	}
}

// squatter waits for queries at the name server's address, and asks there itself, once for
// each line of its input.
const squatter = `
import socket, sys
squat = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
squat.bind(("127.0.0.11", 53))
squat.setblocking(False)
print("up", flush=True)
for line in sys.stdin:
    try:
        s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        s.settimeout(10)
        s.connect(("127.0.0.11", 53))
        s.send(b"\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x03api\x07example\x03com\x00\x00\x01\x00\x01")
        said = s.recv(999)[3] & 15
    except OSError as e:
        said = type(e).__name__
    try:
        said = "taken from %s:" % (squat.recvfrom(999)[1],)
    except BlockingIOError:
        pass
    print(said, flush=True)
`

// TestTheNameServersPlaceIsTheGates: a program that binds its address gets no query, also after
// the gate has died. The control is a network without a gate, where it does.
func TestTheNameServersPlaceIsTheGates(t *testing.T) {
	h := newHost(t)
	newInternet(t, h)
	asks := func(r *running) string {
		r.stdin.Write([]byte("\n"))
		return r.line()
	}
	for _, user := range []string{"--user=agent", "--user=root"} {
		r := h.start([]string{user, "--allow=api.example.com"}, "python3", "-c", squatter)
		if line := r.line(); line != "up" {
			t.Fatalf("%q\n%s", line, &r.stderr)
		}
		if said := asks(r); said != "0" {
			t.Errorf("with a gate: %s", said)
		}
		gate := gateOf(t, r.cmd.Process.Pid)
		if err := unix.Kill(gate, unix.SIGKILL); err != nil {
			t.Fatal(err)
		}
		awaitExit(t, gate)
		if said := asks(r); said != "ConnectionRefusedError" {
			t.Errorf("without: %s", said)
		}
		r.wait()
	}
	free := h.start([]string{"--network=none"}, "python3", "-c", strings.Replace(squatter, "settimeout(10)", "settimeout(0.1)", 1))
	free.line()
	if said := asks(free); !strings.HasPrefix(said, "taken") {
		t.Errorf("control: %s", said)
	}
	free.wait()
}
