//go:build root

package resolver

import (
	"slices"
	"strings"
	"testing"

	"github.com/miekg/dns"

	"clove.run/clove/egress/dnsmsg"
	"clove.run/clove/internal/testhost"
)

// serveAt starts a fake server on port 53 of a loopback address, by UDP.
func serveAt(t *testing.T, address, says string) {
	t.Helper()
	started := make(chan struct{})
	server := &dns.Server{Addr: address + ":53", Net: "udp4", NotifyStartedFunc: func() { close(started) }, Handler: dns.HandlerFunc(records(t, says))}
	done := make(chan error, 1)
	go func() { done <- server.ListenAndServe() }()
	select {
	case err := <-done:
		t.Fatalf("cannot serve on %s: %v", server.Addr, err)
	case <-started:
	}
	t.Cleanup(func() { server.Shutdown(); <-done })
}

// TestTheHostsServersAreAskedAndFollowed: on port 53, as resolv.conf means.
func TestTheHostsServersAreAskedAndFollowed(t *testing.T) {
	testhost.Root(t)
	testhost.NoResidue(t)
	serveAt(t, "127.53.0.1", "a.test. 3600 IN A 198.51.100.1")
	serveAt(t, "127.53.0.2", "a.test. 3600 IN A 198.51.100.2")
	r, path, _, passed := host(t, "nameserver 127.53.0.1\n", "")
	see := func(want string) {
		t.Helper()
		reply, err := r.Lookup(deadline(t), "a.test", dnsmsg.TypeA)
		if err != nil || !slices.Equal(addresses(reply), strings.Fields(want)) {
			t.Errorf("%v, %v; want %s", reply, err, want)
		}
	}
	see("198.51.100.1")
	replace(t, path, "nameserver 127.53.0.2\n")
	see("198.51.100.1") // the control: an answer that is cached for an hour
	passed.pass(lookInterval)
	see("198.51.100.2")
}
