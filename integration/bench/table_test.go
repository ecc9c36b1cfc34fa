package main

import (
	"strings"
	"testing"
)

func TestTheTableShowsWhatWasMeasuredAndWhatWasNot(t *testing.T) {
	b := newTable("network")
	b.Figures = []figure{
		{Peer: peerDirect, What: whatAddress, Unit: unitLatency, Values: spread{P50: 80, P95: 90, P99: 100}},
		{Peer: peerClove, What: whatAddress, Unit: unitLatency, Values: spread{P50: 180, P95: 290, P99: 400},
			Added: &added{0.25, 300}, Ratio: &ratio{0.5, 0.4, 0.6}, Base: peerSquid, Aim: "1.5"},
	}
	b.single("host memory", peerClove, unitMiB, 1.25, "")
	b.describe(peerClove, "everything")
	b.describe(peerClove, "everything")
	b.Absent["docker"] = "no engine answers:\nrefused"
	text := (&results{Clove: "clove 1.0", Kernel: "6.1", CPUs: 2, Rounds: 30, Load: [2]string{"1.0 2.0 3.0", "4.0 5.0 6.0"}, Tables: []*table{b}}).String()
	for _, want := range []string{
		"clove 1.0, Linux 6.1, 2 CPUs, 30 rounds, load 1.0 2.0 3.0 before and 4.0 5.0 6.0 after\n\nnetwork ",
		"new, by address  µs    direct  80.0  90.0  100  -          -          -                             -\n",
		"                 µs    clove   180   290   400  0.25       300        0.50 (0.40 to 0.60) to squid  1.5\n",
		"host memory      MiB   clove   1.2   -     -    -          -          -                             -\n",
		"docker was not measured: no engine answers:; refused\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the table lacks %q:\n%s", want, text)
		}
	}
	if strings.Count(text, "\nclove: everything\n") != 1 {
		t.Errorf("the table does not say once what clove does:\n%s", text)
	}
}

func TestAColumnThatWouldBeEmptyIsLeftOut(t *testing.T) {
	b := newTable("daemon")
	b.several("run.list", unitMS, []float64{1, 2}, "5")
	if want := "daemon    unit  p50  p95  p99  aim\nrun.list  ms    1.0  2.0  2.0  5\n\n"; b.String() != want {
		t.Errorf("%q, not %q", b, want)
	}
}
