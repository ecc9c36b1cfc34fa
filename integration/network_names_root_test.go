//go:build root

package integration

import (
	"strings"
	"testing"

	"github.com/miekg/dns"

	"clove.run/clove/agent"
)

// insideResolver is the address of the name server in a sandbox.
const insideResolver = "127.0.0.11:53"

// TestADeniedNameNeverLeaves: for any type, case, protocol and server of a query, the host
// sends no packet that contains the name. The control sends the same queries on the host.
func TestADeniedNameNeverLeaves(t *testing.T) {
	h := newHost(t)
	n := newInternet(t, h)
	n.zone.add("c2VjcmV0.exfil.example.net. 60 IN A " + evilAddress)
	n.zone.add("exfil.example.net. 60 IN TXT secret")
	n.zone.add("exfil.example.net. 60 IN MX 10 evil.example.net.")
	n.zone.add("api.example.com.exfil.example.net. 60 IN A " + evilAddress)
	n.zone.add("notapi.example.com. 60 IN A " + evilAddress)
	n.zone.add("69.1.101.151.in-addr.arpa. 60 IN PTR exfil.example.net.")
	questions := []attempt{
		{Name: "a", Question: "evil.example.net.", Type: dns.TypeA},
		{Name: "aaaa", Question: "evil.example.net.", Type: dns.TypeAAAA},
		{Name: "tunnel", Question: "c2VjcmV0.exfil.example.net.", Type: dns.TypeA},
		{Name: "case", Question: "EVIL.Example.NET.", Type: dns.TypeA},
		{Name: "txt", Question: "exfil.example.net.", Type: dns.TypeTXT},
		{Name: "mx", Question: "exfil.example.net.", Type: dns.TypeMX},
		{Name: "tcp", Question: "evil.example.net.", Type: dns.TypeA, TCP: true},
		{Name: "suffix", Question: "api.example.com.exfil.example.net.", Type: dns.TypeA},
		{Name: "prefix", Question: "notapi.example.com.", Type: dns.TypeA},
		{Name: "reverse", Question: "69.1.101.151.in-addr.arpa.", Type: dns.TypePTR},
	}
	for _, server := range []string{insideResolver, resolverAddress + ":53", evilAddress + ":53", "[" + evilAddress6 + "]:53"} {
		t.Run(server, func(t *testing.T) {
			n.refuses(t, server, questions)
		})
	}
}

// refuses sends the queries inside, after the control.
func (n *internet) refuses(t *testing.T, server string, questions []attempt) {
	t.Helper()
	at := func(server string) []attempt {
		var all []attempt
		for _, q := range questions {
			q.Address = server
			all = append(all, q)
		}
		return all
	}
	outside := server
	if outside == insideResolver {
		outside = resolverAddress + ":53"
	}
	c := n.capture(t)
	for name, r := range n.attemptOutside(t, at(outside)) {
		if !r.OK {
			t.Errorf("control: %s: %q", name, r.Detail)
		}
	}
	if packets := c.sent(); !says(packets[0], strings.TrimSuffix(questions[0].Question, ".")) {
		t.Error("control: the capture does not see the name")
	}
	n.zone.forget()
	inside, _ := n.attemptInside(t, []string{"--allow=api.example.com", "--allow=*.api.example.com"}, at(server))
	for name, r := range inside {
		want := "REFUSED "
		if name == "reverse" {
			want = "NXDOMAIN " // programs read that correctly: no name exists
		}
		if !strings.HasPrefix(r.Detail, want) {
			t.Errorf("%s: %q, want %s", name, r.Detail, want)
		}
	}
	packets := c.onlyTo()
	for _, q := range questions {
		neverSaid(t, packets, strings.TrimSuffix(q.Question, "."))
	}
	if asked := n.zone.questions(); len(asked) != 0 {
		t.Errorf("the server was asked %q", asked)
	}
}

// TestAllowedNamesResolve: as programs expect.
func TestAllowedNamesResolve(t *testing.T) {
	h := newHost(t)
	n := newInternet(t, h)
	flags := []string{"--allow=*.example.com", "--allow=*.chain.example.com", "--allow=93.184.217.0/24", "--allow=" + siteAddress}
	rows := map[string]struct {
		question string
		kind     uint16
		tcp      bool
		want     []string
		never    string
	}{
		"a":         {question: "api.example.com.", kind: dns.TypeA, want: []string{siteAddress}},
		"aaaa":      {question: "api.example.com.", kind: dns.TypeAAAA, want: []string{siteAddress6}},
		"case":      {question: "aPi.eXample.com.", kind: dns.TypeA, want: []string{siteAddress}},
		"alias":     {question: "www.example.com.", kind: dns.TypeA, want: []string{"CNAME", siteAddress}},
		"chain":     {question: "deep.chain.example.com.", kind: dns.TypeA, want: []string{siteAddress}},
		"truncated": {question: "large.example.com.", kind: dns.TypeTXT, want: []string{"NOERROR tc=true"}},
		"tcp":       {question: "large.example.com.", kind: dns.TypeTXT, tcp: true, want: []string{"NOERROR tc=false", "039x"}},
		"no record": {question: "db.example.com.", kind: dns.TypeAAAA, want: []string{"NOERROR"}},
		"no name":   {question: "nosuch.example.com.", kind: dns.TypeA, want: []string{"NXDOMAIN"}},
		"https":     {question: "hidden.example.com.", kind: dns.TypeHTTPS, want: []string{`alpn="h2"`}, never: "ech="},
		"localhost": {question: "localhost.", kind: dns.TypeA, want: []string{"127.0.0.1"}},
	}
	var attempts []attempt
	for name, row := range rows {
		attempts = append(attempts, attempt{Name: name, Address: insideResolver, Question: row.question, Type: row.kind, TCP: row.tcp})
	}
	inside, r := n.attemptInside(t, flags, attempts)
	for name, row := range rows {
		for _, want := range row.want {
			if !strings.Contains(inside[name].Detail, want) {
				t.Errorf("%s: %q lacks %q\n%s", name, inside[name].Detail, want, r.stderr)
			}
		}
		if row.never != "" && strings.Contains(inside[name].Detail, row.never) {
			t.Errorf("%s: %q holds %q", name, inside[name].Detail, row.never)
		}
	}
	// Control: the server itself gives the records that are removed above.
	outside := n.attemptOutside(t, []attempt{{Name: "https", Address: resolverAddress + ":53", Question: "hidden.example.com.", Type: dns.TypeHTTPS}})
	if !strings.Contains(outside["https"].Detail, "ech=") {
		t.Errorf("control: %q", outside["https"].Detail)
	}
}

// TestAWildcardIsNotItsApex: it matches names at any depth below, and no other name with that
// ending.
func TestAWildcardIsNotItsApex(t *testing.T) {
	h := newHost(t)
	n := newInternet(t, h)
	for _, name := range []string{"example.com", "notexample.com", "xn--bcher-kva.example.com"} {
		n.zone.add(name + ". 60 IN A " + siteAddress)
	}
	n.passes(t, []string{"--allow=*.example.com"}, web("api.example.com", "deep.chain.example.com"))
	n.held(t, []string{"--allow=*.example.com"}, web("example.com", "notexample.com", "evil.example.net"))
	n.held(t, []string{"--allow=*.example.com", "--deny=*.chain.example.com"}, web("deep.chain.example.com"))
	n.passes(t, []string{"--allow=B\u00dcCHER.example.com."}, web("xn--bcher-kva.example.com"))
}

// TestTheCLibraryResolves: getent resolves as any C program does, with the hosts file, reverse
// look-ups and localhost.
func TestTheCLibraryResolves(t *testing.T) {
	h := newHost(t)
	newInternet(t, h)
	r := h.sh(`getent ahostsv4 api.example.com | head -1; getent ahostsv6 www.example.com | head -1; getent hosts localhost
getent ahostsv4 large.example.com | wc -l; getent hosts `+siteAddress+`; getent ahosts $(hostname) >/dev/null && echo own
getent ahosts evil.example.net || echo refused`,
		"--allow=api.example.com", "--allow=www.example.com", "--allow=large.example.com")
	for _, want := range []string{siteAddress + " ", siteAddress6 + " ", "localhost", "own\n", "refused\n", "api.example.com"} {
		if !strings.Contains(r.stdout, want) {
			t.Errorf("%q is missing in\n%s%s", want, r.stdout, r.stderr)
		}
	}
	if !strings.Contains(r.stdout, "\n183\n") && !strings.Contains(r.stdout, "\n61\n") {
		t.Errorf("not all of 61 addresses, three lines each:\n%s", r.stdout)
	}
	if r.record.Status != agent.StatusExited {
		t.Error(r.stderr)
	}
}

// TestSearchDomainsHold: a short name is tried in those of the host's search domains that are
// allowed, and nowhere else.
func TestSearchDomainsHold(t *testing.T) {
	h := newHost(t)
	n := newInternet(t, h)
	n.resolveWith("nameserver " + resolverAddress + "\nsearch example.com example.net\n")
	if out, err := n.outside("getent", "ahostsv4", "evil"); err != nil || !strings.Contains(out, evilAddress) {
		t.Fatalf("control: %q, %v", out, err)
	}
	n.zone.forget()
	r := h.sh("getent ahostsv4 api | head -1; getent ahostsv4 evil || echo refused", "--allow=api.example.com")
	if !strings.HasPrefix(r.stdout, siteAddress+" ") || !strings.HasSuffix(r.stdout, "refused\n") {
		t.Errorf("%q %s", r.stdout, r.stderr)
	}
	if n.zone.wasAsked("evil.example.net") || n.zone.wasAsked("evil.example.com") || n.zone.wasAsked("evil") {
		t.Errorf("asked: %q", n.zone.questions())
	}
}
