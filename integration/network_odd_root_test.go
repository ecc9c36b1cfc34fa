//go:build root

package integration

import (
	"os"
	"strings"
	"testing"
)

// TestTheResolverIsDown: names cannot be resolved, and addresses can still be reached.
func TestTheResolverIsDown(t *testing.T) {
	h := newHost(t)
	n := newInternet(t, h)
	flags := []string{"--allow=api.example.com", "--allow=" + siteAddress}
	n.passes(t, flags, web("api.example.com", siteAddress))
	n.zone.fall()
	inside, r := n.attemptInside(t, flags, web("api.example.com", siteAddress))
	if inside["api.example.com"].OK || !inside[siteAddress].OK {
		t.Errorf("%+v\n%s", inside, r.stderr)
	}
	n.gateLived(t, r)
}

// TestAnotherNameServer: with --dns that server is queried, and not the host's.
func TestAnotherNameServer(t *testing.T) {
	h := newHost(t)
	n := newInternet(t, h)
	n.resolveWith("nameserver 192.0.2.1\n") // no server is there
	c := n.capture(t)
	n.passes(t, []string{"--allow=api.example.com", "--dns=" + resolverAddress}, web("api.example.com"))
	c.onlyTo(append(asks, siteEnds...)...)
}

// TestAStubOnTheLoopback: systemd-resolved listens on the host's loopback, and the agent has a
// loopback of its own.
func TestAStubOnTheLoopback(t *testing.T) {
	h := newHost(t)
	n := newInternet(t, h)
	if err := n.serveDNS(n.here, "127.0.0.53:53"); err != nil {
		t.Fatal(err)
	}
	n.resolveWith("nameserver 127.0.0.53\noptions edns0 trust-ad\nsearch .\n")
	if out, err := n.outside("getent", "hosts", "db.example.com"); err != nil || !strings.Contains(out, otherAddress) {
		t.Fatalf("control: %q, %v", out, err)
	}
	n.passes(t, []string{"--allow=api.example.com"}, web("api.example.com"))
	n.held(t, []string{"--allow=api.example.com"}, web("evil.example.net"))
}

// TestAHostWithoutIPv6: its agents have no IPv6 either, and no delay.
func TestAHostWithoutIPv6(t *testing.T) {
	h := newHost(t)
	n := newInternet(t, h)
	if err := n.here.Do(func() error {
		return os.WriteFile("/proc/sys/net/ipv6/conf/all/disable_ipv6", []byte("1"), 0)
	}); err != nil {
		t.Fatal(err)
	}
	n.passes(t, []string{"--allow=api.example.com", "--allow=" + siteAddress}, web("api.example.com", siteAddress))
	c := n.capture(t)
	if inside, _ := n.attemptInside(t, []string{"--network=public"}, web("["+siteAddress6+"]", lanAddress)); inside["["+siteAddress6+"]"].OK || inside[lanAddress].OK {
		t.Errorf("%+v", inside)
	}
	c.onlyTo()
}

// TestTheHostMoves: its address changes while an agent runs. The agent is not affected, and
// reaches neither the old nor the new address.
func TestTheHostMoves(t *testing.T) {
	h := newHost(t)
	n := newInternet(t, h)
	const newAddress = "172.30.0.77"
	r := h.start(self("--allow=api.example.com", "--allow=172.16.0.0/12"), agentInside, agentWord, "steps")
	if !step(r, siteURL) || step(r, "http://"+ownAddress+"/") {
		t.Fatalf("before: %s", &r.stderr)
	}
	if err := batch(n.here, "addr del "+ownAddress+"/24 dev up0\naddr add "+newAddress+"/24 dev up0\nroute replace default via "+gatewayAddress+"\n"); err != nil {
		t.Fatal(err)
	}
	if out, err := n.outside("/usr/bin/python3", "-c", "import socket; socket.create_connection(('"+newAddress+"', 80), 3)"); err != nil {
		t.Fatalf("control: %s, %v", out, err)
	}
	if !step(r, siteURL) {
		t.Error("after: the site is not reached")
	}
	if step(r, "http://"+newAddress+"/") {
		t.Error("after: the host's new address is reached")
	}
	if end := r.wait(); end.code != 0 {
		t.Error(end.stderr)
	}
}
