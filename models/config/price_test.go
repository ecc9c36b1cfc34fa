package config

import (
	"math"
	"math/big"
	"testing"
	"time"

	"pgregory.net/rapid"

	"clove.run/clove/kernel/budget"
	"clove.run/clove/kernel/grant"
	"clove.run/clove/models"
)

func TestCosts(t *testing.T) {
	t.Parallel()
	p := &Price{Rates: Rates{In: 2000, Cached: 100, CacheWrite: 2500, CacheWriteLong: 4000, Out: 10_000, Reasoning: 12_000},
		Long: &Rates{In: 4000, Out: 15_000, Reasoning: 15_000}, LongAbove: 1000, Tiers: map[string]int64{"flex": 500, "priority": 1750}}
	for _, row := range []struct {
		usage models.Usage
		tier  string
		want  int64
	}{
		{models.Usage{}, "", 0},
		{models.Usage{Cached: 1}, "", 1}, // 0.1, rounded up
		{models.Usage{Cached: 10}, "", 1},
		{models.Usage{Cached: 11}, "default", 2},
		{models.Usage{In: 100, Cached: 10, CacheWrite: 4, Out: 20, Reasoning: 5}, "", 200 + 1 + 10 + 150 + 60},
		{models.Usage{CacheWrite: 10, CacheWriteLong: 4}, "", 15 + 16},
		{models.Usage{CacheWrite: 1, CacheWriteLong: 4}, "", 4}, // a lie: no more for long than altogether
		{models.Usage{In: 100}, "flex", 100},
		{models.Usage{In: 100}, "priority", 350},
		{models.Usage{In: 100}, "never heard of", 350},
		{models.Usage{In: 1000, Out: 1}, "", 2010},
		{models.Usage{In: 1000, Cached: 1, Out: 1}, "", 4015}, // long
		{models.Usage{Out: 1, Reasoning: 9}, "", 12},          // a lie: no more reasoning than output
		{models.Usage{In: -1, Cached: -1, CacheWrite: -1, Out: -1, Reasoning: -1}, "", 0},
		{models.Usage{In: math.MaxInt64, Out: math.MaxInt64, Cached: math.MaxInt64}, "priority", budget.MaxAmount},
	} {
		if got := p.Cost(row.usage, "service_tier="+row.tier); got != row.want {
			t.Errorf("%+v %s: %d, want %d", row.usage, row.tier, got, row.want)
		}
	}
	if got := p.Most(100, 10); got != 400+120 {
		t.Errorf("at most %d", got)
	}
	if got := p.Most(math.MaxInt64, math.MaxInt64, "service_tier=priority"); got != budget.MaxAmount {
		t.Errorf("at most %d", got)
	}
}

// Tiers of several names are multiplied; what is no tier changes nothing, and none makes the
// upper bound smaller.
func TestTiersOfSeveralNames(t *testing.T) {
	t.Parallel()
	p := &Price{Rates: Rates{In: 1000, CacheWriteLong: 2000}, Tiers: map[string]int64{"flex": 500, "fast": 6000, "us": 1100}}
	for _, row := range []struct {
		tiers      []string
		cost, most int64
	}{
		{nil, 1000, 2000},
		{[]string{"service_tier=standard", "speed=standard", "inference_geo=global"}, 1000, 2000},
		{[]string{"ttl=1h", "priority"}, 1000, 2000},
		{[]string{"service_tier=flex"}, 500, 2000},
		{[]string{"speed=fast", "inference_geo=us"}, 6600, 13_200},
	} {
		if cost, most := p.Cost(models.Usage{In: 1000}, row.tiers...), p.Most(1000, 0, row.tiers...); cost != row.cost || most != row.most {
			t.Errorf("%q: %d, at most %d", row.tiers, cost, most)
		}
	}
}

// A call never costs more than Most of its tokens, and the sum is exact but for the last
// micro-dollar.
func TestMostIsAnUpperBound(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		k := rapid.SampledFrom(builtin).Draw(t, "model")
		p := k.prices()[0]
		count := rapid.Int64Range(0, 2_000_000)
		u := models.Usage{In: count.Draw(t, "in"), Cached: count.Draw(t, "cached"), CacheWrite: count.Draw(t, "write"), Out: count.Draw(t, "out")}
		u.CacheWriteLong = rapid.Int64Range(0, u.CacheWrite).Draw(t, "write for long")
		u.Reasoning = rapid.Int64Range(0, u.Out).Draw(t, "reasoning")
		tier := "service_tier=" + rapid.SampledFrom([]string{"", "default", "batch", "flex", "priority", "odd"}).Draw(t, "tier")
		cost, most := p.Cost(u, tier), p.Most(u.In+u.Cached+u.CacheWrite, u.Out, tier)
		if cost > most {
			t.Fatalf("%s: %+v costs %d, but at most %d", k.name, u, cost, most)
		}
		r := p.rates(big.NewInt(u.In + u.Cached + u.CacheWrite))
		nanos := (u.In*r.In + u.Cached*r.Cached + (u.CacheWrite-u.CacheWriteLong)*r.CacheWrite + u.CacheWriteLong*r.CacheWriteLong + u.Out*r.Out) * p.multiplier([]string{tier})
		if want := (nanos + 999_999) / 1_000_000; cost != want {
			t.Fatalf("%s: %+v costs %d, want %d", k.name, u, cost, want)
		}
	})
}

func TestBuiltinPrices(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, k := range builtin {
		if seen[k.name] || len(k.prices()) != 2 {
			t.Errorf("%s: a second row, or no name", k.name)
		}
		seen[k.name] = true
		if _, err := time.Parse(time.DateOnly, k.from.date); err != nil || k.from.url == "" || k.from.host == "" {
			t.Errorf("%s: %+v", k.name, k.from)
		}
		if k.maxOutput <= 0 || k.context < k.maxOutput {
			t.Errorf("%s: %d tokens of output in %d", k.name, k.maxOutput, k.context)
		}
		if k.Cached > k.In || k.CacheWrite < k.In || k.CacheWriteLong < k.CacheWrite || k.Out < k.In || k.Reasoning < k.Out {
			t.Errorf("%s: %+v is no price of a provider", k.name, k.Rates)
		}
	}
}

// A built-in price is of the provider's own servers, and of the models that it names.
func TestWhichPriceHolds(t *testing.T) {
	t.Parallel()
	c := parsed(t, example)
	for _, row := range []struct {
		provider, model string
		in              int64 // -1: no price
	}{
		{"openai", "gpt-4.1", 100},
		{"openai", "gpt-4.1-2025-04-14", 2000},
		{"openai", "gpt-4.1-turbo", -1},
		{"openai", "claude-opus-5-5", -1},
		{"claude", "claude-opus-5-5", 4000},
		{"claude", "claude-opus-5", 5000},
		{"claude", "claude-haiku-4-5-20251001", 1000},
		{"local", "gpt-4.1", -1},
		{"local", "Qwen/Qwen3-8B", 10},
		{"demo", "gpt-4.1", 0},
		{"demo", "paid", 7},
	} {
		name, err := grant.NewScope("model", row.model, grant.NoRights)
		if err != nil {
			t.Fatal(err)
		}
		got := int64(-1)
		if p := c.priceOf(c.Providers[row.provider], name); p != nil {
			got = p.In
		}
		if got != row.in {
			t.Errorf("%s %s: %d, want %d", row.provider, row.model, got, row.in)
		}
	}
}
