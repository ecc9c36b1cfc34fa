package resolver

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/miekg/dns"

	"clove.run/clove/egress/dnsmsg"
)

// clock is a time that only the test moves.
type clock struct {
	mu  sync.Mutex // guards at
	at  time.Time
	now func() time.Time
}

func newClock() *clock {
	c := &clock{at: time.Unix(1_800_000_000, 0)}
	c.now = func() time.Time { c.mu.Lock(); defer c.mu.Unlock(); return c.at }
	return c
}

func (c *clock) pass(d time.Duration) { c.mu.Lock(); defer c.mu.Unlock(); c.at = c.at.Add(d) }

func TestAnAnswerIsKeptAsLongAsItHolds(t *testing.T) {
	t.Parallel()
	negative := func(code int, soa string) answer {
		return func(w dns.ResponseWriter, query *dns.Msg) {
			msg := new(dns.Msg).SetRcode(query, code)
			if soa != "" {
				rr, _ := dns.NewRR(soa)
				msg.Ns = []dns.RR{rr}
			}
			w.WriteMsg(msg)
		}
	}
	for _, c := range []struct {
		name string
		say  answer
		life time.Duration
	}{
		{"least of the chain", records(t, "a.test. 90 IN CNAME b.test.", "b.test. 30 IN A 10.0.0.1"), 30 * time.Second},
		{"nought", records(t, "a.test. 0 IN A 10.0.0.1"), minLife},
		{"a week", records(t, "a.test. 604800 IN A 10.0.0.1"), maxLife},
		{"no such name", negative(dnsmsg.RCodeNameError, "test. 30 IN SOA ns.test. who.test. 1 2 3 4 60"), 30 * time.Second},
		{"nothing of this type", negative(dnsmsg.RCodeSuccess, "test. 3600 IN SOA ns.test. who.test. 1 2 3 4 3600"), maxNegativeLife},
		{"our own SOA", negative(dnsmsg.RCodeSuccess, ""), 0},
		{"failure", negative(dnsmsg.RCodeServerFailure, ""), 0},
	} {
		server, clock := serve(t, c.say), newClock()
		r := asking(server)
		r.now = clock.now
		ask := func(want int) {
			t.Helper()
			if _, err := r.Lookup(deadline(t), "a.test", dnsmsg.TypeA); err != nil {
				t.Fatal(err)
			}
			if got := len(server.questions()); got != want {
				t.Errorf("%s: the server was asked %d times, want %d", c.name, got, want)
			}
		}
		ask(1)
		if c.life > 0 {
			clock.pass(c.life - time.Millisecond)
			ask(1)
			clock.pass(time.Millisecond)
		}
		ask(2)
	}
}

func TestAKeptAnswerGrowsOldAndIsNotShared(t *testing.T) {
	t.Parallel()
	server, clock := serve(t, records(t, "a.test. 30 IN A 10.0.0.1")), newClock()
	r := asking(server)
	r.now = clock.now
	first, err := r.Lookup(deadline(t), "a.test", dnsmsg.TypeA)
	if err != nil {
		t.Fatal(err)
	}
	first.Age(time.Hour)
	clock.pass(10 * time.Second)
	second, err := r.Lookup(deadline(t), "A.TEST.", dnsmsg.TypeA)
	if err != nil || second.Addresses()[0].TTL != 20*time.Second {
		t.Errorf("%v, %v", second, err)
	}
	if _, err := r.Lookup(deadline(t), "a.test", dnsmsg.TypeAAAA); err != nil || len(server.questions()) != 2 {
		t.Errorf("another type was answered from the cache: %v", err)
	}
}

func TestTheCacheIsBounded(t *testing.T) {
	t.Parallel()
	c, now := newCache(), time.Now()
	kept := entry{message: []byte("x"), born: now, expires: now.Add(time.Hour)}
	for i := range 3 * maxEntries {
		c.put(fmt.Sprint(i), kept)
		c.get("0", now) // in use, so it stays
	}
	if len(c.byKey) != maxEntries || c.recent.Len() != maxEntries {
		t.Errorf("%d entries, %d in the list", len(c.byKey), c.recent.Len())
	}
	_, used := c.get("0", now)
	_, idle := c.get("1", now)
	_, last := c.get(fmt.Sprint(3*maxEntries-1), now)
	if !used || idle || !last {
		t.Errorf("used %v, idle %v, last %v", used, idle, last)
	}
	c.put("0", kept) // a second put adds no entry to the list
	if c.recent.Len() != maxEntries {
		t.Errorf("%d in the list", c.recent.Len())
	}
	c.put("large", entry{message: make([]byte, maxEntryBytes+1), expires: now.Add(time.Hour)})
	if _, ok := c.get("large", now); ok {
		t.Error("an entry that is too large was kept")
	}
	if _, ok := c.get("0", now.Add(time.Hour)); ok || len(c.byKey) != maxEntries-1 {
		t.Errorf("an old entry is there, or was not removed")
	}
}

func TestOneQuestionFliesOnce(t *testing.T) {
	t.Parallel()
	const callers = 20
	release := make(chan struct{})
	server := serve(t, func(w dns.ResponseWriter, query *dns.Msg) {
		<-release
		records(t, "a.test. 0 IN A 10.0.0.1")(w, query)
	})
	r := asking(server)
	r.timeout = 20 * time.Second
	clock := newClock()
	r.now = clock.now
	var wait sync.WaitGroup
	replies := make([]*dnsmsg.Reply, callers)
	for i := range callers {
		wait.Go(func() { replies[i], _ = r.Lookup(deadline(t), "a.test", dnsmsg.TypeA) })
	}
	<-server.arrived
	close(release) // later callers find it in the cache: the clock stands still
	wait.Wait()
	if got := server.questions(); len(got) != 1 {
		t.Errorf("asked %q", got)
	}
	for i, reply := range replies {
		if reply == nil || !slices.Equal(addresses(reply), []string{"10.0.0.1"}) || slices.Index(replies, reply) != i {
			t.Fatalf("caller %d has %v", i, reply)
		}
	}
}

// TestAFlightOutlivesItsFirstCaller: the other callers still wait for it.
func TestAFlightOutlivesItsFirstCaller(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	server := serve(t, func(w dns.ResponseWriter, query *dns.Msg) {
		<-release
		records(t, "a.test. 60 IN A 10.0.0.1")(w, query)
	})
	r := asking(server)
	r.timeout = 20 * time.Second
	first, leave := context.WithCancel(context.Background())
	var wait sync.WaitGroup
	wait.Go(func() {
		if _, err := r.Lookup(first, "a.test", dnsmsg.TypeA); !errors.Is(err, context.Canceled) {
			t.Errorf("the first caller: %v", err)
		}
	})
	<-server.arrived
	leave()
	wait.Wait()
	wait.Go(func() {
		if reply, err := r.Lookup(deadline(t), "a.test", dnsmsg.TypeA); err != nil || len(reply.Addresses()) != 1 {
			t.Errorf("the second caller: %v, %v", reply, err)
		}
	})
	close(release)
	wait.Wait()
	if got := server.questions(); len(got) != 1 {
		t.Errorf("asked %q", got)
	}
}

// TestFlightsAreBounded: so an agent that queries many names uses few sockets.
func TestFlightsAreBounded(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	server := serve(t, func(w dns.ResponseWriter, query *dns.Msg) {
		<-release
		rcode(dnsmsg.RCodeServerFailure)(w, query)
	})
	r := asking(server)
	r.timeout = 20 * time.Second
	var wait sync.WaitGroup
	for i := range 2 * maxFlights {
		wait.Go(func() { r.Lookup(deadline(t), fmt.Sprintf("%d.test", i), dnsmsg.TypeA) })
	}
	for range maxFlights {
		<-server.arrived
	}
	if got := len(server.questions()); got != maxFlights || len(r.slots) != maxFlights {
		t.Errorf("%d questions at once", got)
	}
	close(release)
	wait.Wait()
	if got := len(server.questions()); got != 2*maxFlights {
		t.Errorf("%d questions in all", got)
	}
}
