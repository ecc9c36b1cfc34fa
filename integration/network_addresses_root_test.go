//go:build root

package integration

import (
	"fmt"
	"strings"
	"testing"
)

// web returns an attempt to fetch the first page of each host.
func web(hosts ...string) []attempt {
	var attempts []attempt
	for _, host := range hosts {
		attempts = append(attempts, attempt{Name: host, URL: "http://" + host + "/"})
	}
	return attempts
}

// forbidden are addresses that no mode and no wide rule allows: the cloud's metadata, the
// host's own, and each of them embedded in an address of the other family.
var forbidden = []string{metadataAddress, "[" + metadata6 + "]", "[::ffff:" + metadataAddress + "]",
	ownAddress, ownPublicAddress, "[" + ownAddress6 + "]", "[::ffff:" + ownAddress + "]"}

// inward are addresses of internal networks.
var inward = []string{lanAddress, lanAddress2, "[" + lanAddress6 + "]", cgnatAddress, gatewayAddress,
	"[::ffff:" + lanAddress + "]", "[" + nat64Address + "]", "[" + sixToFour + "]", "[" + teredoAddress + "]"}

// TestPublicIsOnlyPublic: the mode reaches the internet, and nothing near.
func TestPublicIsOnlyPublic(t *testing.T) {
	h := newHost(t)
	n := newInternet(t, h)
	public := []string{"--network=public"}
	n.passes(t, public, web(siteAddress, "["+siteAddress6+"]", "api.example.com", "evil.example.net"))
	n.held(t, public, web(append(inward, forbidden...)...))
	names := web("private.example.com", "alias-private.example.com", "metadata.example.com", "own.example.com", "private6.example.com",
		"mapped.example.com", "nat64.example.com", "sixtofour.example.com")
	n.held(t, public, names, asks...)
}

// TestAWideRuleNamesNobodyInParticular: a wide rule does not allow internal networks, and a
// network's range does not allow the host itself: those need a rule of their own.
func TestAWideRuleNamesNobodyInParticular(t *testing.T) {
	h := newHost(t)
	n := newInternet(t, h)
	wide := []string{"--allow=0.0.0.0/0:*", "--allow=[::]/0:*"}
	n.passes(t, wide, web(siteAddress, "["+siteAddress6+"]"))
	n.held(t, wide, web(append(inward, forbidden...)...))
	near := []string{"--allow=10.0.0.0/8", "--allow=172.16.0.0/12", "--allow=192.168.0.0/16", "--allow=100.64.0.0/10", "--allow=[fc00::]/7"}
	n.passes(t, near, web(lanAddress, lanAddress2, cgnatAddress, "["+lanAddress6+"]", gatewayAddress))
	n.held(t, append(near, "--allow=169.254.0.0/16"), web(forbidden...))
	n.passes(t, []string{"--allow=metadata"}, web(metadataAddress, "["+metadata6+"]"))
	n.passes(t, []string{"--allow=" + metadataAddress}, web(metadataAddress))
	n.passes(t, []string{"--allow=host"}, web(ownAddress, ownPublicAddress, "["+ownAddress6+"]"))
	n.passes(t, []string{"--allow=private"}, web(lanAddress, lanAddress2))
}

// TestTheLoopbackIsTheAgentsOwn: only a rule for a port of the host leads to a service on the
// host's loopback.
func TestTheLoopbackIsTheAgentsOwn(t *testing.T) {
	h := newHost(t)
	n := newInternet(t, h)
	wide := []string{"--allow=0.0.0.0/0:*", "--allow=[::]/0:*"}
	n.held(t, wide, web("127.0.0.1", "127.8.9.1", "[::1]", "0.0.0.0", "[::]", "[::ffff:127.0.0.1]"))
	// The hosts file of a minimal host may lack the name, so the control leaves it out.
	if inside, _ := n.attemptInside(t, wide, web("localhost")); inside["localhost"].OK {
		t.Errorf("%+v", inside)
	}
}

// spellings are other ways to write lanAddress, as inet_aton(3) reads them.
var spellings = []string{"167838211", "0x0a010203", "0xa.1.2.3", "012.1.2.3", "10.1.515", "10.66051", "012.0x1.0002.3"}

// TestSpellingsOfAnAddress: whatever a program makes of a number is one address, and is
// checked as that address. Python asks the C library.
func TestSpellingsOfAnAddress(t *testing.T) {
	h := newHost(t)
	n := newInternet(t, h)
	const program = `import socket, sys
for name in sys.argv[1:]:
    try:
        with socket.create_connection((name, 80), 3) as s:
            s.sendall(b"GET / HTTP/1.0\r\n\r\n")
            print(name, b"` + reached + `" in s.recv(4096))
    except OSError as e:
        print(name, e.__class__.__name__)
`
	out, err := n.outside(append([]string{"/usr/bin/python3", "-c", program}, spellings...)...)
	if err != nil || strings.Count(out, " True\n") != len(spellings) {
		t.Fatalf("control: %q, %v", out, err)
	}
	for _, mode := range []string{"--network=public", "--allow=*.example.com"} {
		c := n.capture(t)
		r := h.agent([]string{mode}, append([]string{"python3", "-c", program}, spellings...)...)
		if strings.Contains(r.stdout, "True") || strings.Count(r.stdout, "\n") != len(spellings) {
			t.Errorf("%s: %q %s", mode, r.stdout, r.stderr)
		}
		c.onlyTo()
	}
	// As a flag, none of them is accepted as an address, and as a name it would not mean this
	// address.
	for _, spelling := range append(spellings, "10.1.2.3%eth0", "[fe80::1%25eth0]", "010.001.002.003", "10.1.2.3.", "http://10.1.2.3", "user@10.1.2.3",
		"api.example.com%00.example.net", "api..example.com", ".example.com", "*.com", "*", "a.*.example.com", "api.example.com/path", "api.example.com:0",
		"api.example.com:65536", "api.example.com:80-", "api.example.com:90-80", "-api.example.com", "api\uFF0Eexample\u3002com.", "") {
		r := h.clove("run", "--rm", "--allow="+spelling, "--", "true")
		if r.code != 125 {
			t.Errorf("--allow=%q: exit %d\n%s", spelling, r.code, r.stderr)
		}
	}
}

// TestRebinding: a name with a public address first, and an internal one later.
func TestRebinding(t *testing.T) {
	h := newHost(t)
	n := newInternet(t, h)
	n.zone.rebind("rebind.example.com.", siteAddress, lanAddress)
	const url = "http://rebind.example.com/"
	wants := func(r *running, want bool) {
		t.Helper()
		fmt.Fprintln(r.stdin, url)
		if line := r.line(); strings.Contains(line, reached) != want {
			t.Errorf("%s\n%s", line, &r.stderr)
		}
	}
	out, err := n.outside("sh", "-c", "getent ahostsv4 rebind.example.com; getent ahostsv4 rebind.example.com")
	if err != nil || !strings.Contains(out, siteAddress) || !strings.Contains(out, lanAddress) {
		t.Fatalf("control: %q, %v", out, err)
	}
	n.zone.rebind("rebind.example.com.", siteAddress, lanAddress)
	n.zone.forget()
	c := n.capture(t)
	r := h.start(self("--allow=rebind.example.com"), agentInside, agentWord, "steps")
	wants(r, true)
	n.zone.awaitTurn(t, "rebind.example.com.", func() { fmt.Fprintln(r.stdin, url); r.line() })
	wants(r, false)
	r.wait()
	c.onlyTo(append(asks, "tcp "+siteAddress+":80")...)
	if n.visited("tcp " + lanAddress + ":80") {
		t.Error("the name led inside")
	}
	n.passes(t, []string{"--allow=rebind.example.com", "--allow=10.0.0.0/8"}, web("rebind.example.com"))
}
