//go:build root

package integration

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"clove.run/clove/integration/probe"
)

// reachAll returns the probe's commands for every way to each address. The port is one that
// answers.
func reachAll(uplink int) []probe.Command {
	scope := "%" + strconv.Itoa(uplink)
	every := []string{"tcp", "tcp-fast-open", "mptcp", "sctp", "udp-blind", "udplite", "icmp", "raw-icmp", "raw-sctp", "raw-gre", "raw-tcp"}
	streams := []string{"tcp", "raw-icmp", "udp-blind"}
	reach := func(address, port string, ways ...string) probe.Command {
		return probe.Command{Args: append([]string{"reach", address, port}, ways...)}
	}
	commands := []probe.Command{reach(evilAddress, "80", every...), reach(evilAddress6, "80", every...), reach(siteAddress, "7", "udp-blind"),
		reach(otherAddress, "22", "tcp"), reach(otherAddress, "25", "tcp"), reach(siteAddress6, "7", "udp-blind"), reach(evilAddress, "53", "udp-blind")}
	for _, address := range []string{lanAddress, lanAddress2, lanAddress6, cgnatAddress, metadataAddress, metadata6,
		nat64Address, sixToFour, teredoAddress, linkLocal6 + scope, gatewayAddress, ownAddress, ownAddress6, ownPublicAddress} {
		commands = append(commands, reach(address, "80", streams...))
	}
	// To multicast and broadcast addresses, as in discovery protocols.
	for _, group := range []struct{ address, port string }{
		{"224.0.0.251", "5353"}, {"239.255.255.250", "1900"}, {"255.255.255.255", "9"}, {"172.30.0.255", "9"},
		{"ff02::fb" + scope, "5353"}, {"ff02::1" + scope, "9"},
	} {
		commands = append(commands, reach(group.address, group.port, "udp-blind"))
	}
	return commands
}

// TestNoPacketLeavesByItself: whatever an agent sends, by any protocol, to any address, the
// host's interfaces send none of it. In each row only the named protection remains, because
// the filter is off in some.
func TestNoPacketLeavesByItself(t *testing.T) {
	h := newHost(t)
	n := newInternet(t, h)
	program := probeProgram(t)
	n.leavesOutside(t, program)
	for _, flags := range [][]string{
		{"--network=none"},
		{"--network=none", "--user=root", "--seccomp=unconfined"},
		{"--allow=api.example.com"},
		{"--allow=api.example.com", "--user=root", "--seccomp=unconfined"},
		{"--network=public", "--deny=*.example.net", "--deny=" + evilAddress, "--deny=" + evilAddress6, "--deny=" + siteAddress, "--deny=" + siteAddress6, "--deny=" + otherAddress},
	} {
		t.Run(strings.Join(flags, " "), func(t *testing.T) {
			c := n.capture(t)
			inside := h.attackInside(t, program, reachAll(1), flags...)
			for name, r := range inside {
				// Blind sends get no answer, and lo accepts everything: the capture decides.
				blind := strings.Contains(name, "blind") || strings.Contains(name, "raw-") || strings.Contains(name, "udplite")
				if r.OK && !blind {
					t.Errorf("%s: reached, %q", name, r.Detail)
				}
			}
			c.onlyTo()
		})
	}
}

// leavesOutside is the control: on the host, each address is reached or at least sent to, and
// the capture sees it.
func (n *internet) leavesOutside(t *testing.T, program string) {
	t.Helper()
	c := n.capture(t)
	out, err := n.outside("sh", "-c", probeScript(program, reachAll(n.uplink())))
	if err != nil {
		t.Fatalf("control: %v", err)
	}
	sent := flows(c.sent())
	results := attacked(t, []byte(out))
	for name, r := range results {
		words := strings.Fields(name) // reach ADDRESS PORT WAY
		address, _, _ := strings.Cut(words[1], "%")
		// Some kernels lack SCTP, and no server listens to it; its packets are checked below.
		lacks := strings.HasSuffix(name, " sctp") && (r.Errno == "EPROTONOSUPPORT" || r.Errno == "ESOCKTNOSUPPORT" || r.Errno == "ECONNREFUSED")
		if !r.OK && !lacks {
			t.Errorf("control: %s: %+v", name, r)
		}
		seen := slices.ContainsFunc(sent, func(f string) bool { return strings.Contains(f, address) })
		if !seen {
			t.Errorf("control: nothing to %s is seen", address)
		}
	}
	for _, protocol := range []string{"132 ", "47 ", "136 ", "icmp ", "icmp6 ", "tcp ", "udp "} {
		if !slices.ContainsFunc(sent, func(f string) bool { return strings.HasPrefix(f, protocol) }) {
			t.Errorf("control: no packet of protocol %sis seen in %q", protocol, sent)
		}
	}
}

// uplink returns the index of the host's interface, which a link-local address needs.
func (n *internet) uplink() int {
	n.t.Helper()
	out, err := n.outside("cat", "/proc/net/if_inet6")
	if err != nil {
		n.t.Fatal(err)
	}
	for line := range strings.Lines(out) {
		var address, device string
		var index, bits, scope, state int
		if _, err := fmt.Sscanf(line, "%s %x %x %x %x %s", &address, &index, &bits, &scope, &state, &device); err == nil && device == "up0" {
			return index
		}
	}
	n.t.Fatalf("the host has no up0:\n%s", out)
	return 0
}

// TestNoneKnowsNoNames: except its own, and no server is queried.
func TestNoneKnowsNoNames(t *testing.T) {
	h := newHost(t)
	n := newInternet(t, h)
	const script = "getent hosts localhost >/dev/null && echo own; getent ahosts api.example.com || echo refused"
	if out, err := n.outside("sh", "-c", script); err != nil || strings.Contains(out, "refused") {
		t.Fatalf("control: %q, %v", out, err)
	}
	c := n.capture(t)
	if r := h.sh(script); r.stdout != "own\nrefused\n" {
		t.Errorf("%q %s", r.stdout, r.stderr)
	}
	c.onlyTo()
}

// TestAgentsDoNotMeet: a port on which one agent listens cannot be reached by another agent or
// the host.
func TestAgentsDoNotMeet(t *testing.T) {
	h := newHost(t)
	n := newInternet(t, h)
	program := probeProgram(t)
	listening := h.start(self("--allow=api.example.com"), agentInside, agentWord, "listen", ":8099")
	if line := listening.line(); line != "up" {
		t.Fatalf("%q\n%s", line, &listening.stderr)
	}
	defer listening.wait()
	reach := []probe.Command{{Args: []string{"reach", "127.0.0.1", "8099", "tcp"}}, {Args: []string{"reach", "::1", "8099", "tcp"}}}
	for name, r := range h.attackInside(t, program, reach, "--allow=api.example.com") {
		if r.OK || r.Errno != "ECONNREFUSED" {
			t.Errorf("another agent: %s: %+v", name, r)
		}
	}
	for _, address := range []string{"127.0.0.1", ownAddress} {
		if r := n.reachOutside(program, "tcp", address, "8099"); r.OK {
			t.Errorf("the host reaches %s: %q", address, r.Detail)
		}
	}
	// Control: in one sandbox the same two programs reach each other.
	r := h.agent(append(self(), withProbe(program)...), "sh", "-c",
		"(sleep 30 | "+agentInside+" "+agentWord+" listen :8099) | (read up; "+strings.TrimSuffix(probeScript(probeInside, reach), "\n")+"\nkill 0)")
	for name, got := range attacked(t, []byte(r.stdout)) {
		if !got.OK {
			t.Errorf("control: %s: %+v", name, got)
		}
	}
	if len(attacked(t, []byte(r.stdout))) != 2 {
		t.Errorf("control: %q %s", r.stdout, r.stderr)
	}
}
