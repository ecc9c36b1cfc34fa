package audit

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func refusal(run int, method string) Entry {
	return Entry{Kind: KindDecision, Owner: 1000, Agent: fmt.Sprint("agent-", run), Principal: fmt.Sprint("run:", run), Method: method, Verdict: VerdictDeny, Code: "denied"}
}

// A principal that hands over entries faster than it may has a bounded number of records, and
// one that says how many of which kind are left out. Another one loses nothing.
func TestAFloodIsCounted(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	options := small()
	options.FloodBurst = 20
	l := open(t, dir, options)
	began := time.Now()
	const calls = 1000
	for i := range calls {
		must(t, l.Enqueue(refusal(1, []string{"grant.check", "grant.give"}[i%2])))
		if i%100 == 0 {
			must(t, l.Enqueue(refusal(2, "budget.charge")))
		}
	}
	most := 20 + int(time.Since(began).Seconds()*floodPerSecond) + 1
	must(t, l.Close())
	written, counted, quiet := 0, uint64(0), 0
	for _, e := range all(t, dir) {
		switch {
		case e.Kind == KindGap:
			counted += e.Count
			if e.Code != gapFlood || e.Principal != "run:1" || e.Agent != "agent-1" || e.Owner != 1000 ||
				!strings.Contains(e.What, " deny grant.check denied") || !strings.Contains(e.What, " deny grant.give denied") {
				t.Errorf("%+v", e)
			}
		case e.Principal == "run:1":
			written++
		default:
			quiet++
		}
	}
	if written < 20 || written > most || written+int(counted) != calls || quiet != calls/100 {
		t.Errorf("%d written (at most %d), %d counted, %d of the other one", written, most, counted, quiet)
	}
}

// The record of a flood comes while the flood goes on, and not at the log's end only.
func TestAFloodIsReportedSoon(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	options := small()
	options.FloodBurst = 1
	l := open(t, dir, options)
	for range 5 {
		must(t, l.Enqueue(refusal(1, "grant.check")))
	}
	found := func() (gaps uint64) {
		for _, e := range all(t, dir) {
			gaps += e.Count
		}
		return gaps
	}
	for deadline := time.Now().Add(time.Minute); found() != 4; {
		if time.Now().After(deadline) {
			t.Fatalf("%d are counted", found())
		}
		time.Sleep(time.Millisecond) // a deadline of the clock's is what is tested
	}
	must(t, l.Close())
	sound(t, dir, 2)
}

// What a flood counts in memory is known to be missing if the writer is killed.
func TestAFloodOfAKilledWriter(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	options := small()
	options.FloodBurst = 1
	l := open(t, dir, options)
	for range 51 {
		must(t, l.Enqueue(refusal(1, "grant.check")))
	}
	with(t, l, decision("takes the first one along"))
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) { // it follows the answer
		_, unwritten, err := readHead(l.w.path(headName))
		must(t, err)
		if unwritten == 50 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("head counts %d", unwritten)
		}
	}
}

// Principals that are quiet again are forgotten.
func TestQuietPrincipalsAreForgotten(t *testing.T) {
	t.Parallel()
	l := open(t, t.TempDir(), Options{SegmentBytes: 4 << 20, FloodPerSecond: 1e9})
	for run := range 3 * floodsMost {
		must(t, l.Enqueue(refusal(run, "grant.check")))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := len(l.floods); n > floodsMost+1 {
		t.Errorf("%d are remembered", n)
	}
}
