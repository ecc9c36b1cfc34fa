//go:build root

package integration

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"clove.run/clove/internal/testhost"
)

// TestServersThatSpeakFirst work by name and by range, on the ports that the
// rule names and no other.
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

// TestDatagramsNeedTheirOwnRule, and then go both ways.
func TestDatagramsNeedTheirOwnRule(t *testing.T) {
	h := newHost(t)
	n := newInternet(t, h)
	udp := func(address string) attempt {
		return attempt{Name: address, Address: address, UDP: true, Parts: [][]byte{[]byte("hello")}}
	}
	silent := func(address string) attempt { // a refusal is silence
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

// TestBytesAreCounted on both sides, and held to their limit.
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
	// What was on its way in the kernel when the limit was reached is counted, and not delivered.
	if rx := r.record.Usage.NetRxBytes; rx == nil || *rx > 3<<20 {
		t.Errorf("the record counts %v bytes, limit 1M", *rx)
	}
	said := r.stderr
	for _, d := range r.record.Denials {
		said += " " + d.Rule + d.Target
	}
	if !strings.Contains(said, "bytes") {
		t.Errorf("nobody is told of the limit: %s", said)
	}
}

// lastWords is what a fetched text says of its length.
func lastWords(said string) string {
	_, after, _ := strings.Cut(said, "… ")
	return after
}

// TestOneAgentsCrowdIsItsOwn: an agent that holds all the connections that it
// can get, and half requests besides, delays no other agent. Its own limit is
// seen in its record.
func TestOneAgentsCrowdIsItsOwn(t *testing.T) {
	h := newHost(t)
	newInternet(t, h)
	attempts, limit := 10_000, 1000
	if testhost.Lane() == testhost.LaneVM {
		attempts, limit = 500, 100
	}
	for _, row := range []struct {
		name string
		args []string
	}{
		{"idle", []string{otherAddress + ":22", fmt.Sprint(attempts)}},
		{"half a request", []string{"api.example.com:80", fmt.Sprint(limit), "GET / HTTP/1.1\r\nHost: "}},
	} {
		t.Run(row.name, func(t *testing.T) {
			crowd := h.start(self("--allow=db.example.com:22", "--allow=api.example.com", "--allow="+otherAddress+":22",
				fmt.Sprintf("--net-connections=%d", limit), "--net-rate=60000", "--ulimit=nofile=12000", "--name=crowd"),
				append([]string{agentInside, agentWord, "idle"}, row.args...)...)
			line := crowd.line()
			var served, refused int
			if _, err := fmt.Sscanf(line, "served %d refused %d", &served, &refused); err != nil || served > limit {
				t.Errorf("%s\n%s", line, &crowd.stderr)
			}
			other := h.start(self("--allow=api.example.com"), agentInside, agentWord, "steps")
			began, slowest := time.Now(), time.Duration(0)
			for range 20 {
				asked := time.Now()
				fmt.Fprintln(other.stdin, "http://api.example.com/")
				if line := other.line(); !strings.Contains(line, reached) {
					t.Errorf("%s\n%s", line, &other.stderr)
				}
				slowest = max(slowest, time.Since(asked))
			}
			other.wait()
			end := crowd.wait()
			t.Logf("%s; meanwhile 20 requests of another took %v, the slowest %v; refused %+v", line, time.Since(began), slowest, end.record.Network)
			if use := end.record.Network; use == nil || use.ConnectionsPeak > int64(limit) || row.name == "idle" && use.ConnectionsPeak < int64(limit) {
				t.Errorf("record: %+v", use)
			}
			// Half of what a person would wait for: far above the usual few milliseconds.
			if slowest > testhost.Patience(time.Second) {
				t.Errorf("a request of the other agent took %v", slowest)
			}
		})
	}
}
