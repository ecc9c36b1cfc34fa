//go:build root

package integration

import (
	"bytes"
	"net"
	"strings"
	"testing"

	"clove.run/clove/internal/testhost"
)

// foreign is a name with the address of api.example.com that no rule allows.
const foreign = "files.example.org"

// request is an attempt to write to the site's web server.
func request(name string, parts ...string) attempt {
	a := attempt{Name: name, Address: "api.example.com:80"}
	for _, part := range parts {
		a.Parts = append(a.Parts, []byte(part))
	}
	return a
}

// unspoken makes the attempts outside, where each sends a foreign name, and inside, where none
// may: no packet with the name leaves the host.
func (n *internet) unspoken(t *testing.T, flags []string, attempts []attempt, ends ...string) {
	t.Helper()
	for i, a := range attempts {
		a.Within = testhost.Patience(attemptTime / 10) // the answer does not matter
		attempts[i] = a
		c := n.capture(t)
		n.attemptOutside(t, []attempt{a})
		said := false
		for _, p := range c.sent() {
			said = said || says(p, foreign) || bytes.Contains(p.bytes, []byte("example.org")) || strings.Contains(a.Name, "in pieces")
		}
		if !said {
			t.Errorf("control: %s: the name does not leave the host", a.Name)
		}
	}
	c := n.capture(t)
	inside, r := n.attemptInside(t, flags, attempts)
	for name, got := range inside {
		if got.OK {
			t.Errorf("%s: reached %q", name, got.Detail)
		}
	}
	if len(inside) != len(attempts) {
		t.Errorf("%d of %d attempts were made", len(inside), len(attempts))
	}
	n.gateLived(t, r)
	neverSaid(t, c.onlyTo(ends...), foreign)
	denied := 0
	for _, d := range r.record.Denials {
		if d.Kind == "network" {
			denied++
		}
	}
	if denied == 0 {
		t.Errorf("the record tells of no denial: %+v", r.record.Denials)
	}
}

// siteEnds are the allowed destinations of a connection to api.example.com.
var siteEnds = []string{"tcp " + net.JoinHostPort(siteAddress, "80"), "tcp " + net.JoinHostPort(siteAddress6, "80"),
	"tcp " + net.JoinHostPort(siteAddress, "443"), "tcp " + net.JoinHostPort(siteAddress6, "443")}

// TestTheHostIsTheAllowedOne: on a connection to an address of an allowed name, every way to
// name another host, or to name one that two parsers read differently, is refused.
func TestTheHostIsTheAllowedOne(t *testing.T) {
	h := newHost(t)
	n := newInternet(t, h)
	flags := []string{"--allow=api.example.com"}
	const get = "GET / HTTP/1.1\r\n"
	n.passes(t, flags, []attempt{
		request("plain", get+"Host: api.example.com\r\n\r\n"),
		request("case", get+"hOST:  API.Example.COM\r\n\r\n"),
		request("last dot", get+"Host: api.example.com.\r\n\r\n"),
		request("port", get+"Host: api.example.com:80\r\n\r\n"),
		request("absolute", "GET http://api.example.com/ HTTP/1.1\r\nHost: api.example.com\r\n\r\n"),
		request("in pieces", get, "Ho", "st: api.exa", "mple.com\r\n", "\r\n"),
		request("old", "GET / HTTP/1.0\r\nHost: api.example.com\r\n\r\n"),
		request("body", "POST /drop HTTP/1.1\r\nHost: api.example.com\r\nContent-Length: 5\r\n\r\nhello"),
	})
	n.unspoken(t, flags, []attempt{
		request("another", get+"Host: "+foreign+"\r\n\r\n"),
		request("another with a port", get+"Host: "+foreign+":80\r\n\r\n"),
		request("absolute", "GET http://"+foreign+"/ HTTP/1.1\r\nHost: api.example.com\r\n\r\n"),
		request("absolute over", "GET http://api.example.com/ HTTP/1.1\r\nHost: "+foreign+"\r\n\r\n"),
		request("second host", get+"Host: api.example.com\r\nHost: "+foreign+"\r\n\r\n"),
		request("first host", get+"Host: "+foreign+"\r\nHost: api.example.com\r\n\r\n"),
		request("userinfo", get+"Host: api.example.com@"+foreign+"\r\n\r\n"),
		request("userinfo in the line", "GET http://api.example.com@"+foreign+"/ HTTP/1.1\r\nHost: api.example.com\r\n\r\n"),
		request("null byte", get+"Host: api.example.com\x00."+foreign+"\r\n\r\n"),
		request("percent", get+"Host: api.example.com%00."+foreign+"\r\n\r\n"),
		request("suffix", get+"Host: api.example.com."+foreign+"\r\n\r\n"),
		request("comma", get+"Host: api.example.com, "+foreign+"\r\n\r\n"),
		request("folded", get+"Host: api.example.com\r\n\t."+foreign+"\r\n\r\n"),
		request("space before the colon", get+"Host : "+foreign+"\r\nHost: api.example.com\r\n\r\n"),
		request("bare line feed", get+"Host: api.example.com\nHost: "+foreign+"\n\r\n\r\n"),
		request("bare return", get+"X: y\rHost: "+foreign+"\r\nHost: api.example.com\r\n\r\n"),
		request("empty line first", "\r\n"+get+"Host: "+foreign+"\r\n\r\n"),
		request("connect", "CONNECT "+foreign+":443 HTTP/1.1\r\nHost: api.example.com\r\n\r\n"),
		request("in pieces", get, "Host: files.ex", "ample.org\r\n", "\r\n"),
		request("line without a version", "GET http://"+foreign+"/\r\n"),
		request("two lengths and a second request", "POST / HTTP/1.1\r\nHost: "+foreign+"\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
	}, append(asks, siteEnds...)...)
	n.held(t, flags, []attempt{
		request("no host", "GET / HTTP/1.0\r\n\r\n"),
		request("an address", get+"Host: "+siteAddress+"\r\n\r\n"),
		request("another port", get+"Host: api.example.com:8080\r\n\r\n"),
		request("an empty label", get+"Host: api..example.com\r\n\r\n"),
		request("two last dots", get+"Host: api.example.com..\r\n\r\n"),
		request("a parent", get+"Host: example.com\r\n\r\n"),
		request("a child", get+"Host: x.api.example.com\r\n\r\n"),
		request("another alphabet", get+"Host: xn--pi-7kc.example.com\r\n\r\n"),
	}, append(asks, siteEnds...)...)
}

// TestAnAllowedAddressNeedsNoName: with a rule by address the same requests pass, except for a
// name that a rule denies.
func TestAnAllowedAddressNeedsNoName(t *testing.T) {
	h := newHost(t)
	n := newInternet(t, h)
	to := func(host string) attempt {
		return attempt{Name: host, Address: siteAddress + ":80", Parts: [][]byte{[]byte("GET / HTTP/1.1\r\nHost: " + host + "\r\n\r\n")}}
	}
	flags := []string{"--allow=" + siteAddress, "--deny=" + foreign}
	n.passes(t, flags, []attempt{to("api.example.com"), to("any.example.net"), to(siteAddress)})
	n.held(t, flags, []attempt{to(foreign), to(strings.ToUpper(foreign))}, siteEnds...)
}

// TestTheServerNameIsTheAllowedOne: the same for TLS.
func TestTheServerNameIsTheAllowedOne(t *testing.T) {
	h := newHost(t)
	n := newInternet(t, h)
	flags := []string{"--allow=api.example.com"}
	say := func(name, server string, shape shape) attempt {
		return attempt{Name: name, Address: "api.example.com:443",
			Hello: &hello{ServerName: server, Host: server, Shape: shape, Encryption: encryptedHelloList()}}
	}
	n.passes(t, flags, []attempt{
		say("plain", "api.example.com", shapePlain), say("case", "API.example.com", shapePlain), say("legacy", "api.example.com", shapeLegacy),
		say("bytes", "api.example.com", shapeBytes), say("records", "api.example.com", shapeRecords), say("padded", "api.example.com", shapePadded),
	})
	n.held(t, flags, []attempt{
		say("another", foreign, shapePlain), say("another by bytes", foreign, shapeBytes), say("another by records", foreign, shapeRecords),
		say("another padded", foreign, shapePadded), say("another legacy", foreign, shapeLegacy),
		say("none", "", shapePlain),
		say("encrypted", foreign, shapeEncrypted), say("encrypted, allowed", "api.example.com", shapeEncrypted),
	}, append(asks, siteEnds...)...)
}

// TestAHelloThatCanBeReadTwice: if two parsers could read different names in it, it never
// leaves.
func TestAHelloThatCanBeReadTwice(t *testing.T) {
	h := newHost(t)
	n := newInternet(t, h)
	const allowed = "api.example.com"
	ours, other := helloBytes(allowed), helloBytes(foreign)
	raw := func(name string, parts ...[]byte) attempt {
		return attempt{Name: name, Address: "api.example.com:443", Parts: parts}
	}
	names := func(entries ...[]byte) []byte { return withNames(ours, allowed, bytes.Join(entries, nil)) }
	n.unspoken(t, []string{"--allow=" + allowed}, []attempt{
		raw("plain", other),
		raw("two names", names(nameEntry(allowed), nameEntry(foreign))),
		raw("two names, the other way", names(nameEntry(foreign), nameEntry(allowed))),
		raw("null byte", names(nameEntry(allowed+"\x00."+foreign))),
		raw("last dot", names(nameEntry(foreign+"."))),
		raw("an alert first", []byte{21, 3, 1, 0, 2, 1, 0}, other),
		raw("a change of cipher first", []byte{20, 3, 1, 0, 1, 1}, other),
		raw("an empty record first", []byte{22, 3, 1, 0, 0}, other),
		raw("a request instead", []byte("GET / HTTP/1.1\r\nHost: "+foreign+"\r\n\r\n")),
		raw("no TLS at all", []byte("\x00\x01\x02"+foreign)),
	}, append(asks, siteEnds...)...)
	n.unspoken(t, []string{"--allow=" + allowed}, []attempt{
		{Name: "TLS on port 80", Address: "api.example.com:80", Parts: [][]byte{other}},
		{Name: "neither on port 80", Address: "api.example.com:80", Parts: [][]byte{[]byte("\x01\x02" + foreign)}},
	}, append(asks, siteEnds...)...)
}

// TestWhatIsSaidLaterStaysWithTheAddress: a name rule checks only the first head or hello, so
// further hosts on the same allowed server can be reached over that connection. Such a
// connection never leads to another address.
func TestWhatIsSaidLaterStaysWithTheAddress(t *testing.T) {
	h := newHost(t)
	n := newInternet(t, h)
	c := n.capture(t)
	n.passes(t, []string{"--allow=api.example.com"}, []attempt{
		{Name: "fronted", Address: "api.example.com:443", Hello: &hello{ServerName: "api.example.com", Host: foreign}},
		request("second request", "GET /redirect?to=/ HTTP/1.1\r\nHost: api.example.com\r\n\r\n", "GET / HTTP/1.1\r\nHost: "+foreign+"\r\n\r\n"),
	})
	c.onlyTo(append(asks, siteEnds...)...)
}

// TestRedirectsAreNewConnections: each is checked by itself.
func TestRedirectsAreNewConnections(t *testing.T) {
	h := newHost(t)
	n := newInternet(t, h)
	var attempts []attempt
	for _, to := range []string{"http://" + lanAddress + "/", "http://" + metadataAddress + "/latest/meta-data/", "http://evil.example.net/",
		"http://[" + nat64Address + "]/", "http://" + ownAddress + "/", "//" + foreign + "/"} {
		attempts = append(attempts, attempt{Name: to, URL: "http://api.example.com/redirect?to=" + to})
	}
	n.held(t, []string{"--allow=api.example.com"}, attempts, append(asks, siteEnds...)...)
	n.passes(t, []string{"--allow=api.example.com", "--allow=" + foreign},
		[]attempt{{Name: "allowed", URL: "http://api.example.com/redirect?to=http://" + foreign + "/"}})
}
