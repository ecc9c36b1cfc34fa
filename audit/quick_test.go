package audit

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// usual is an entry of a usual size.
func usual(i int) Entry {
	return Entry{Kind: KindDecision, Owner: 1000, Namespace: "acme/research", Agent: "reader", Run: "0123456789abcdef", Principal: PrincipalRun("0123456789abcdef"),
		Method: "grant.check", What: fmt.Sprintf("net:api-%d.example.com:443", i), Verdict: VerdictAllow, Rule: "0123456789abcdef", Digest: Digest(nil), Correlation: "0123456789abcdef"}
}

// Handing over an entry takes its caller a few microseconds: it neither waits for the disk nor
// for the writer. The bound is ten times what KERNEL.md promises, for a loaded machine.
func TestHandingOverIsQuick(t *testing.T) {
	l := open(t, t.TempDir(), Options{SegmentBytes: 64 << 20})
	took := make([]time.Duration, 4000)
	for i := range took {
		e := usual(i)
		began := time.Now()
		err := l.Enqueue(e)
		took[i] = time.Since(began)
		must(t, err)
	}
	slices.Sort(took)
	if median := took[len(took)/2]; median > 500*time.Microsecond {
		t.Errorf("half of the calls take more than %v", median)
	} else {
		t.Logf("p50 %v, p99 %v", median, took[len(took)*99/100])
	}
}
