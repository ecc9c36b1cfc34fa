package broker

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"clove.run/clove/egress"
)

func TestAPinLivesAsLongAsItsAnswer(t *testing.T) {
	t.Parallel()
	addr := netip.MustParseAddr("93.184.216.34")
	for _, row := range []struct{ ttl, lives time.Duration }{
		{0, pinLeast + pinGrace},
		{10 * time.Minute, 10*time.Minute + pinGrace},
		{1000 * time.Hour, pinMost + pinGrace},
	} {
		clock := &fakeClock{now: time.Unix(1e9, 0)}
		p := newPins(clock.Now)
		p.add("a.example.com", addr, row.ttl)
		clock.advance(row.lives)
		if len(p.names(addr)) != 1 || len(p.addresses("a.example.com")) != 1 {
			t.Errorf("%s: gone too early", row.ttl)
		}
		clock.advance(time.Nanosecond)
		if len(p.names(addr)) != 0 || len(p.addresses("a.example.com")) != 0 || p.order.Len() != 0 {
			t.Errorf("%s: still there after %s", row.ttl, row.lives)
		}
	}
}

func TestAtTheBoundTheOldestPinGoes(t *testing.T) {
	t.Parallel()
	p := newPins(time.Now)
	addr := func(i int) netip.Addr { return netip.AddrFrom4([4]byte{93, 1, byte(i >> 8), byte(i)}) }
	for i := range maxPins {
		p.add("a.example.com", addr(i), time.Hour)
	}
	p.add("a.example.com", addr(0), time.Hour) // refreshed, so it is not the oldest any more
	p.add("b.example.com", addr(maxPins), time.Hour)
	if len(p.names(addr(0))) != 1 || len(p.names(addr(1))) != 0 || len(p.names(addr(maxPins))) != 1 || p.order.Len() != maxPins {
		t.Errorf("%v %v %v of %d", p.names(addr(0)), p.names(addr(1)), p.names(addr(maxPins)), p.order.Len())
	}
}

func TestOneAddressHasSoManyNames(t *testing.T) {
	t.Parallel()
	p := newPins(time.Now)
	addr := netip.MustParseAddr("93.184.216.34")
	p.add("early.example.com", addr, time.Hour)
	for i := range maxNames {
		p.add(egress.Name(fmt.Sprintf("n%d.example.com", i)), addr, 2*time.Hour)
	}
	if names := p.names(addr); len(names) != maxNames || slices.Contains(names, "early.example.com") || len(p.addresses("early.example.com")) != 0 {
		t.Errorf("%d names: %v", len(names), names)
	}
}

// TestPinsAreWhatAListWouldBe compares with the simplest implementation.
func TestPinsAreWhatAListWouldBe(t *testing.T) {
	t.Parallel()
	type pair struct {
		name egress.Name
		addr netip.Addr
	}
	rapid.Check(t, func(t *rapid.T) {
		clock := &fakeClock{now: time.Unix(1e9, 0)}
		p := newPins(clock.Now)
		model := map[pair]time.Time{}
		names := rapid.SampledFrom([]egress.Name{"a.test", "b.test", "c.test"})
		addrs := rapid.Custom(func(t *rapid.T) netip.Addr {
			return netip.AddrFrom4([4]byte{93, 0, 0, rapid.Byte().Draw(t, "addr") % 4})
		})
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				key := pair{names.Draw(t, "name"), addrs.Draw(t, "addr")}
				ttl := time.Duration(rapid.IntRange(0, 1000).Draw(t, "ttl")) * time.Second
				p.add(key.name, key.addr, ttl)
				if until := clock.Now().Add(max(ttl, pinLeast) + pinGrace); until.After(model[key]) {
					model[key] = until
				}
			},
			"drop": func(t *rapid.T) {
				name := names.Draw(t, "name")
				p.drop(func(other egress.Name) bool { return other != name })
				for key := range model {
					if key.name == name {
						delete(model, key)
					}
				}
			},
			"wait": func(t *rapid.T) {
				clock.advance(time.Duration(rapid.IntRange(1, 600).Draw(t, "seconds")) * time.Second)
			},
			"": func(t *rapid.T) {
				for i := range 4 {
					addr := netip.AddrFrom4([4]byte{93, 0, 0, byte(i)})
					var want []egress.Name
					for key, until := range model {
						if key.addr == addr && !clock.Now().After(until) {
							want = append(want, key.name)
						}
					}
					slices.Sort(want)
					if got := p.names(addr); !slices.Equal(got, want) {
						t.Fatalf("%s: %v, want %v", addr, got, want)
					}
				}
			},
		})
	})
}

func TestDenialsAreAddedUpAndBounded(t *testing.T) {
	t.Parallel()
	told := 0
	all := newDenials(func(Denial) { told++ })
	at := time.Unix(1e9, 0)
	for i := range MaxDenials + 50 {
		for range 2 {
			all.add(Decision{Time: at.Add(time.Duration(i)), Kind: KindDNS, Name: fmt.Sprintf("n%d.test", i), Detail: "not allowed", Rule: "r"})
		}
	}
	list, total := all.list()
	if len(list) != MaxDenials+1 || total != 2*(MaxDenials+50) || told != MaxDenials+1 {
		t.Fatalf("%d entries, %d in all, %d told", len(list), total, told)
	}
	first, last := list[0], list[MaxDenials]
	if first.Target != "n0.test" || first.Count != 2 || first.Reason != "not allowed" || !first.Time.Equal(at) {
		t.Errorf("first %+v", first)
	}
	if last.Target != OtherTargets || last.Count != 100 {
		t.Errorf("last %+v", last)
	}
}

func TestDecisionTargets(t *testing.T) {
	t.Parallel()
	at := netip.MustParseAddrPort
	for want, d := range map[string]Decision{
		"a.test:443":    {Name: "a.test", Address: at("93.184.216.34:443")},
		"a.test":        {Name: "a.test", Address: at("10.0.0.1:0")},
		"[2606::1]:443": {Address: at("[2606::1]:443")},
		"10.0.0.1":      {Address: at("10.0.0.1:0")},
		"everything":    {},
	} {
		if got := d.Target(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
