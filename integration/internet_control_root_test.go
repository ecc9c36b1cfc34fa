//go:build root

package integration

import (
	"net"
	"slices"
	"strings"
	"testing"
)

// TestTheTestsInternetIsThere: what later tests find refused inside works for a program
// without a sandbox on the same host, and the capture sees it.
func TestTheTestsInternetIsThere(t *testing.T) {
	h := newHost(t)
	n := newInternet(t, h)
	program := probeProgram(t)
	for _, row := range []struct{ way, address, port string }{
		{"tcp", siteAddress, "80"}, {"tcp", siteAddress6, "80"}, {"tcp", otherAddress, "22"}, {"tcp", otherAddress, "25"},
		{"tcp", lanAddress, "5432"}, {"tcp", lanAddress2, "7"}, {"tcp", cgnatAddress, "80"}, {"tcp", metadataAddress, "80"},
		{"tcp", metadata6, "80"}, {"tcp", nat64Address, "80"}, {"tcp", sixToFour, "80"}, {"tcp", teredoAddress, "80"}, {"tcp", lanAddress6, "80"},
		{"udp", siteAddress, "7"}, {"udp", siteAddress6, "7"}, {"udp", evilAddress, "443"},
		{"icmp", siteAddress, "0"}, {"raw-icmp", evilAddress, "0"}, {"raw-icmp", siteAddress6, "0"},
	} {
		c := n.capture(t)
		got := n.reachOutside(program, row.way, row.address, row.port)
		if !got.OK {
			t.Errorf("control: %v: %+v", row, got)
		}
		kind := strings.TrimPrefix(row.way, "raw-")
		if kind == "icmp" && strings.Contains(row.address, ":") {
			kind = "icmp6"
		}
		want := kind + " " + row.address
		if row.port != "0" {
			want = kind + " " + net.JoinHostPort(row.address, row.port)
		}
		if sent := flows(c.sent()); !slices.Contains(sent, want) {
			t.Errorf("control: the capture does not see %q, but %q", want, sent)
		}
	}
}

// TestTheCaptureSeesNames: in a query to the name server and in a request.
func TestTheCaptureSeesNames(t *testing.T) {
	h := newHost(t)
	n := newInternet(t, h)
	c := n.capture(t)
	out, err := n.outside("/usr/bin/python3", "-c", `import urllib.request as u; print(u.urlopen("http://www.example.com/").read().decode())`)
	if err != nil || !strings.Contains(out, reached) || !strings.Contains(out, "www.example.com") {
		t.Fatalf("control: %q, %v", out, err)
	}
	packets := c.onlyTo(append(asks, "tcp "+siteAddress+":80", "tcp ["+siteAddress6+"]:80")...)
	var said []string
	for _, p := range packets {
		if says(p, "www.example.com") {
			said = append(said, p.protocol)
		}
	}
	if !slices.Contains(said, "udp") || !slices.Contains(said, "tcp") || !n.zone.wasAsked("www.example.com") {
		t.Errorf("control: the name was seen in %q of %q", said, flows(packets))
	}
	if n.zone.wasAsked("other.example.com") || !(n.visited("tcp "+siteAddress+":80") || n.visited("tcp ["+siteAddress6+"]:80")) {
		t.Error("control: the servers do not remember their clients")
	}
}
