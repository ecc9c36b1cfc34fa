//go:build root

package integration

import (
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/miekg/dns"

	"clove.run/clove/agent"
	"clove.run/clove/internal/testhost"
)

// TestServersThatSpeakFirst: they work with rules by name and by range, on the ports of the
// rule and no others.
func TestServersThatSpeakFirst(t *testing.T) {
	h := newHost(t)
	n := newInternet(t, h)
	to := func(port string) attempt { return attempt{Name: port, Address: "db.example.com:" + port} }
	line := attempt{Name: "7", Address: "db.example.com:7", Parts: [][]byte{[]byte("hello")}}
	for _, rules := range [][]string{
		{"--allow=db.example.com:22", "--allow=tcp://db.example.com:25", "--allow=db.example.com:5-10"},
		{"--allow=db.example.com:*"},
		{"--allow=db.example.com:*", "--allow=93.184.216.32/29:7-25"},
	} {
		n.passes(t, rules, []attempt{to("22"), to("25"), line})
	}
	n.held(t, []string{"--allow=db.example.com:25", "--allow=udp://db.example.com:7", "--deny=db.example.com:22"},
		[]attempt{to("22"), line}, asks...)
}

// TestDatagramsNeedTheirOwnRule: with it they go in both directions.
func TestDatagramsNeedTheirOwnRule(t *testing.T) {
	h := newHost(t)
	n := newInternet(t, h)
	udp := func(address string) attempt {
		return attempt{Name: address, Address: address, UDP: true, Parts: [][]byte{[]byte("hello")}}
	}
	silent := func(address string) attempt { // a refused datagram gets no answer
		a := udp(address)
		a.Within = testhost.Patience(attemptTime / 10)
		return a
	}
	site, site6 := net.JoinHostPort(siteAddress, "7"), net.JoinHostPort(siteAddress6, "7")
	n.passes(t, []string{"--allow=udp://" + siteAddress + ":7", "--allow=udp://[" + siteAddress6 + "]:7"}, []attempt{udp(site), udp(site6)})
	n.passes(t, []string{"--allow=udp://db.example.com:7"}, []attempt{udp("db.example.com:7")})
	n.held(t, []string{"--network=public"}, []attempt{silent(site), silent(net.JoinHostPort(evilAddress, "443"))})
	n.held(t, []string{"--allow=udp://" + siteAddress + ":7", "--allow=" + siteAddress + ":*"},
		[]attempt{silent(net.JoinHostPort(siteAddress, "443")), silent(net.JoinHostPort(evilAddress, "7")), silent(net.JoinHostPort(lanAddress, "7"))})
}

// TestBytesAreCounted: in both directions, and the limit is enforced.
func TestBytesAreCounted(t *testing.T) {
	h := newHost(t)
	n := newInternet(t, h)
	fetch := []attempt{{Name: "first", URL: "http://api.example.com/bytes/3000000"}, {Name: "second", URL: "http://api.example.com/"}}
	free, r := n.attemptInside(t, []string{"--allow=api.example.com"}, fetch)
	if !strings.Contains(free["first"].Detail, "3000000 bytes") || !free["second"].OK {
		t.Errorf("control: %+v %s", free, r.stderr)
	}
	if rx := r.record.Usage.NetRxBytes; rx == nil || *rx < 3_000_000 || *rx > 3_100_000 {
		t.Errorf("the record counts %v bytes", rx)
	}
	held, r := n.attemptInside(t, []string{"--allow=api.example.com", "--net-bytes=1M"}, fetch)
	var delivered int
	if _, err := fmt.Sscanf(lastWords(held["first"].Detail), "%d bytes", &delivered); err != nil || delivered > 1<<20 || held["second"].OK {
		t.Errorf("over the limit: %d, %v, %+v", delivered, err, held)
	}
	// Bytes that were already in the kernel when the limit was reached are counted, and not
	// delivered.
	if rx := r.record.Usage.NetRxBytes; rx == nil || *rx > 3<<20 {
		t.Errorf("the record counts %v bytes, limit 1M", *rx)
	}
	said := r.stderr
	for _, d := range r.record.Denials {
		said += " " + d.Rule + d.Target
	}
	if !strings.Contains(said, "bytes") {
		t.Errorf("no message names the limit: %s", said)
	}
}

// lastWords returns what a fetched text says of its length.
func lastWords(said string) string {
	_, after, _ := strings.Cut(said, "… ")
	return after
}

// TestQuestionsAreBytesToo: names below a wildcard carry bytes out. By default they are bounded,
// which is the control of the limits: each of those lets fewer out. All are counted.
func TestQuestionsAreBytesToo(t *testing.T) {
	h := newHost(t)
	n := newInternet(t, h)
	var questions []attempt
	for i := range 150 {
		name := fmt.Sprintf("%s.n%d.exfil.example.net.", strings.Join(slices.Repeat([]string{strings.Repeat("x", 58)}, 3), "."), i)
		questions = append(questions, attempt{Name: fmt.Sprint(i), Address: insideResolver, Question: name, Type: dns.TypeA})
	}
	// The budget is read now and then, so this agent is still there.
	questions = append(questions, attempt{Name: "wait", Address: evilAddress + ":7", UDP: true, Within: testhost.Patience(attemptTime)})
	rule := "--allow=*.exfil.example.net"
	for what, row := range map[string]struct {
		flags  []string
		most   int
		status agent.Status
		hint   string
	}{
		"default":     {[]string{rule}, 16 << 10, agent.StatusExited, "different names of more than 16384 bytes in an hour under *.exfil.example.net"},
		"--net-bytes": {[]string{rule, "--net-bytes=5k"}, 5000, agent.StatusExited, "the bytes of this run are used up"},
		"both":        {[]string{rule, "--net-bytes=5k", "--budget=net_bytes=3k"}, 5000, agent.StatusBudget, "the bytes of this run are used up"},
	} {
		n.zone.forget()
		r := h.agentWith(string(encoded(t, questions)), self(row.flags...), agentInside, agentWord, "attempt")
		sent := 0
		for _, question := range n.zone.questions() {
			sent += len(strings.TrimSuffix(strings.TrimPrefix(question, "A "), "."))
		}
		if sent > row.most || sent < row.most/4 || r.record.Usage.NetTxBytes == nil || *r.record.Usage.NetTxBytes < int64(sent) {
			t.Errorf("%s: %d bytes left, at most %d; the record counts %v", what, sent, row.most, r.record.Usage)
		}
		if r.record.Status != row.status || !strings.Contains(r.stderr, row.hint) {
			t.Errorf("%s: %s\n%s", what, r.record.Status, r.stderr)
		}
	}
}
