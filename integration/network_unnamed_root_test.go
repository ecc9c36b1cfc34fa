//go:build root

package integration

import (
	"slices"
	"strings"
	"testing"

	"clove.run/clove/agent"
)

// A client that shows no name is refused where the rule is for a name, with its own reason and the
// rule that takes the addresses of that name. That rule lets it pass, and leads nowhere else.
func TestAddressesOfAName(t *testing.T) {
	h := newHost(t)
	n := newInternet(t, h)
	unnamed := []attempt{request("no host", "GET / HTTP/1.0\r\n\r\n")}
	_, r := n.held(t, []string{"--allow=api.example.com"}, slices.Clone(unnamed), append(asks, siteEnds...)...)
	if !strings.Contains(r.stderr, "--allow @api.example.com:80") {
		t.Errorf("no hint: %s", r.stderr)
	}
	n.passes(t, []string{"--allow=@api.example.com:80"}, slices.Clone(unnamed))
	n.held(t, []string{"--allow=@api.example.com:80"}, []attempt{{Name: "another name", URL: "http://" + foreign}}, append(asks, siteEnds...)...)
}

// A head that is too long, and HTTP/2 without TLS, are refused for reasons of their own. An empty
// line before a request is ignored.
func TestReasonsOfOpenings(t *testing.T) {
	h := newHost(t)
	n := newInternet(t, h)
	said := func(from attempt, reason string) string {
		t.Helper()
		inside, r := n.attemptInside(t, []string{"--allow=api.example.com"}, []attempt{from})
		if reason != "" && !slices.ContainsFunc(r.record.Denials, func(d agent.Denial) bool { return strings.Contains(d.Rule, reason) }) {
			t.Errorf("%s: %+v\n%s", from.Name, r.record.Denials, r.stderr)
		}
		return inside[from.Name].Detail
	}
	long := "GET / HTTP/1.1\r\nHost: api.example.com\r\nX: " + strings.Repeat("x", 40<<10) + "\r\n\r\n"
	if got := said(request("long", long), "longer than 16 KiB"); !strings.Contains(got, "431") || !strings.Contains(got, "longer than 16 KiB") {
		t.Errorf("a long head: %q", got)
	}
	said(request("http2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), "HTTP/2 without TLS")
	// The site's server does not ignore it; its answer shows that the gate did.
	if got := said(request("empty line", "\r\nGET / HTTP/1.1\r\nHost: api.example.com\r\n\r\n"), ""); !strings.Contains(got, "400 Bad Request") {
		t.Errorf("an empty line first: %q", got)
	}
}
