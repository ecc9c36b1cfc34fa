package queue

import (
	"fmt"
	"math/rand"
	"testing"
	"time"
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// TestAThousandCallsDelayAnotherByOne: with one place, the newcomer is served after the call
// that runs. The control is the order of coming, in which it would be the last.
func TestAThousandCallsDelayAnotherByOne(t *testing.T) {
	t.Parallel()
	q := New(Limits{Concurrency: 1})
	for range 1000 {
		q.Enter("greedy", 500, 1)
	}
	running, _ := q.Next(start)
	other := q.Enter("other", 500, 1)
	if q.Waiting() != 1000 {
		t.Fatalf("%d wait", q.Waiting())
	}
	if c, _ := q.Next(start); c != nil {
		t.Fatal("two run at once")
	}
	q.Leave(running)
	if c, _ := q.Next(start); c != other {
		t.Error("another call is before the newcomer's")
	}
}

// TestSharesFollowWeights serves agents that always wait, for calls of random sizes.
func TestSharesFollowWeights(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewSource(1))
	q := New(Limits{Concurrency: 1})
	weights := map[string]int{"a": 1, "b": 2, "c": 4}
	served := map[string]int64{}
	enter := func(name string) { q.Enter(name, 100+random.Int63n(1000), weights[name]) }
	for name := range weights {
		for range 3 {
			enter(name)
		}
	}
	total := int64(0)
	for range 7000 {
		c, _ := q.Next(start)
		served[c.agent] += c.tokens
		total += c.tokens
		q.Leave(c)
		enter(c.agent)
	}
	for name, weight := range weights {
		got, want := float64(served[name])/float64(total), float64(weight)/7
		if got < want*0.95 || got > want*1.05 {
			t.Errorf("%s of weight %d got %.3f, want %.3f", name, weight, got, want)
		}
	}
}

// TestNobodyStarves: whatever comes, a call is served before any agent's later tokens exceed
// its own by more than one call of the largest size for each unit of weight.
func TestNobodyStarves(t *testing.T) {
	t.Parallel()
	for seed := range int64(50) {
		random := rand.New(rand.NewSource(seed))
		q := New(Limits{Concurrency: 1 + random.Int63n(4)})
		var running []*Call
		entered := map[*Call]int{}
		waited, largest := 0, 0
		agents := 2 + random.Intn(8)
		for step := range 3000 {
			switch random.Intn(3) {
			case 0:
				name := fmt.Sprint(random.Intn(agents))
				if c := q.Enter(name, 1+random.Int63n(1000), 1); q.Waiting() < 100 {
					entered[c] = step
				} else {
					q.Leave(c)
				}
			case 1:
				if c, _ := q.Next(start); c != nil {
					running = append(running, c)
					waited = max(waited, step-entered[c])
					delete(entered, c)
				}
			case 2:
				if len(running) > 0 {
					q.Leave(running[0])
					running = running[1:]
				}
			}
			largest = max(largest, q.Waiting())
		}
		// A hundred calls wait at most, and about each third step serves one.
		if waited > 1500 {
			t.Errorf("seed %d: a call waited for %d steps, with %d waiting", seed, waited, largest)
		}
	}
}

func TestAMinutesRequests(t *testing.T) {
	t.Parallel()
	q := New(Limits{RequestsPerMinute: 2})
	for range 3 {
		q.Enter("a", 1, 1)
	}
	for i := range 2 {
		if c, _ := q.Next(start); c == nil {
			t.Fatalf("call %d waits", i)
		}
	}
	c, wait := q.Next(start)
	if c != nil || wait != 30*time.Second {
		t.Fatalf("%v, %s: the third waits for half a minute", c, wait)
	}
	if c, _ := q.Next(start.Add(wait)); c == nil {
		t.Error("it waits longer than it was to")
	}
}

// TestACallLargerThanAMinute runs alone, and the next waits until it is paid for.
func TestACallLargerThanAMinute(t *testing.T) {
	t.Parallel()
	q := New(Limits{TokensPerMinute: 100})
	q.Enter("a", 250, 1)
	q.Enter("a", 100, 1)
	if c, _ := q.Next(start); c == nil {
		t.Fatal("it never runs")
	}
	if _, wait := q.Next(start); wait != 150*time.Second {
		t.Errorf("the next waits for %s", wait)
	}
}

// TestAClockThatIsSetBackEndsNoWait, and lengthens none.
func TestAClockThatIsSetBackEndsNoWait(t *testing.T) {
	t.Parallel()
	q := New(Limits{RequestsPerMinute: 1})
	q.Enter("a", 1, 1)
	q.Enter("a", 1, 1)
	q.Next(start)
	if c, wait := q.Next(start.Add(-time.Hour)); c != nil || wait != time.Minute {
		t.Errorf("%v, %s", c, wait)
	}
	if c, _ := q.Next(start.Add(-time.Hour + time.Minute)); c == nil {
		t.Error("it waits for ever")
	}
}

// TestANumberInARequestStopsNobody: an agent may write any maximum of tokens into a request.
// The control is a call of three minutes' worth, which is waited for.
func TestANumberInARequestStopsNobody(t *testing.T) {
	t.Parallel()
	for _, tokens := range []int64{300, 1 << 40, 1 << 62} {
		q := New(Limits{TokensPerMinute: 100})
		q.Enter("a", tokens, 1)
		q.Enter("b", 100, 1)
		if c, _ := q.Next(start); c == nil {
			t.Fatal("it never runs")
		}
		if _, wait := q.Next(start); wait != 3*time.Minute {
			t.Errorf("behind %d tokens the next waits for %s", tokens, wait)
		}
	}
}

func TestWhatACallExpects(t *testing.T) {
	t.Parallel()
	const service = 10 * time.Second
	for name, row := range map[string]struct {
		limits  Limits
		running int
		ahead   int
		service time.Duration
		wait    time.Duration
	}{
		"no limit":             {Limits{}, 5, 5, service, 0},
		"a place is free":      {Limits{Concurrency: 2}, 1, 0, service, 0},
		"one place":            {Limits{Concurrency: 1}, 1, 0, service, service},
		"one place, others":    {Limits{Concurrency: 1}, 1, 3, service, 4 * service},
		"two places, others":   {Limits{Concurrency: 2}, 2, 3, service, 2 * service},
		"nothing ended yet":    {Limits{Concurrency: 1}, 1, 0, 0, -1},
		"requests":             {Limits{RequestsPerMinute: 1}, 1, 1, service, 2 * time.Minute},
		"tokens":               {Limits{TokensPerMinute: 100}, 1, 2, service, 3 * time.Minute},
		"requests, and places": {Limits{RequestsPerMinute: 1, Concurrency: 1}, 1, 0, service, time.Minute},
	} {
		q := New(Limits{})
		for range row.running {
			q.Enter("a", 100, 1)
			q.Next(start)
		}
		q.SetLimits(row.limits)
		if row.limits != (Limits{}) { // what ran before a limit is not counted in it
			q.requests.used, q.tokens.used, q.requests.at, q.tokens.at = float64(row.running), 100*float64(row.running), start, start
		}
		for range row.ahead {
			q.Enter("a", 100, 1)
		}
		if before, wait := q.Expect(q.Enter("a", 100, 1), start, row.service); before != row.ahead || wait != row.wait {
			t.Errorf("%s: %d are before, and the wait is %s", name, before, wait)
		}
	}
}

// TestExpectationsComeTrue: where calls of one size run for one time and nobody comes, each
// begins when it was foreseen, or before.
func TestExpectationsComeTrue(t *testing.T) {
	t.Parallel()
	for seed := range int64(30) {
		random := rand.New(rand.NewSource(seed))
		q := New(Limits{Concurrency: 1 + random.Int63n(3), RequestsPerMinute: 10 + random.Int63n(50)})
		now, service := start, time.Duration(1+random.Intn(5))*time.Second
		foreseen, ends := map[*Call]time.Time{}, map[*Call]time.Time{}
		for i := range 40 {
			c := q.Enter(fmt.Sprint(i%4), 1, 1)
			_, wait := q.Expect(c, now, service)
			foreseen[c] = now.Add(wait)
		}
		for _, c := range q.waiting { // those that came earlier are served in between
			_, wait := q.Expect(c, now, service)
			foreseen[c] = now.Add(wait)
		}
		for len(foreseen) > 0 {
			for c, end := range ends {
				if !end.After(now) {
					q.Leave(c)
					delete(ends, c)
				}
			}
			for c, _ := q.Next(now); c != nil; c, _ = q.Next(now) {
				if late := now.Sub(foreseen[c]); late > 2*service {
					t.Fatalf("seed %d: a call begins %s late", seed, late)
				}
				delete(foreseen, c)
				ends[c] = now.Add(service)
			}
			now = now.Add(100 * time.Millisecond)
		}
	}
}
