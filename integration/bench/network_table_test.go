package main

import (
	"strings"
	"testing"
)

func TestTheNetworksTable(t *testing.T) {
	text := table(&results{Clove: "clove 1.0", Kernel: "6.1", CPUs: 2, Rounds: 30, Network: &network{
		Absent: map[string]string{peerTinyproxy: "it is not installed"},
		Figures: []networkFigure{
			{Peer: peerDirect, What: whatAddress, Unit: unitLatency, Values: spread{P50: 80, P95: 90, P99: 100}},
			{Peer: peerClove, What: whatAddress, Unit: unitLatency, Values: spread{P50: 180, P95: 290, P99: 400},
				Added: &added{100, 300}, Ratio: &ratio{0.5, 0.4, 0.6}, Best: peerSquid},
			{Peer: peerSquid, What: whatAddress, Unit: unitLatency, Values: spread{P50: 280, P95: 390, P99: 500},
				Added: &added{200, 400}, Ratio: &ratio{1, 1, 1}, Best: peerSquid},
		}}})
	for _, want := range []string{
		"clove 1.0, Linux 6.1, 2 CPUs, 30 rounds, load  before and  after\n\nnetwork ",
		"new, by address  µs    direct  80   90   100  -          -          -\n",
		"                       clove   180  290  400  100        300        0.50 (0.40 to 0.60) to squid\n",
		"                       squid   280  390  500  200        400        -\n",
		"tinyproxy was not measured: it is not installed\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the table lacks %q:\n%s", want, text)
		}
	}
	if strings.Contains(text, "host memory") {
		t.Error("a part that was not run has a table")
	}
}

// If one of the three lacked a rule, their work would differ.
func TestEachProxyHasTheSameRules(t *testing.T) {
	for name, text := range map[string]string{"tinyproxy": tinyproxyConfig("/dir") + tinyproxyFilter, "squid": squidConfig("/dir")} {
		for _, want := range []string{"bench", "example", portByAddress, portByName, "127.0.0.1"} {
			if !strings.Contains(text, want) {
				t.Errorf("%s's configuration lacks %s", name, want)
			}
		}
		if !strings.Contains(strings.ReplaceAll(text, `\.`, "."), serverAddress) {
			t.Errorf("%s's rules lack the server", name)
		}
	}
}
