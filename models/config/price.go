package config

import (
	"maps"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"time"

	"clove.run/clove/internal/document"
	"clove.run/clove/kernel/budget"
	"clove.run/clove/kernel/grant"
	"clove.run/clove/models"
)

// Price is what the tokens of some models cost.
type Price struct {
	Provider string        // the provider's name; empty: those of Family
	Family   models.Family // empty: of any family
	Model    string        // a glob over the provider's names: * is any run of characters
	Rates
	// Long replaces the rates of the whole call if its input has more than LongAbove
	// tokens, cached ones included; nil: long inputs cost the same.
	Long      *Rates
	LongAbove int64
	// Tiers are thousandths of the price that a service tier costs, as 500 for half.
	Tiers  map[string]int64
	Date   string // when the price was read, YYYY-MM-DD
	Source string // where

	host  string // of a built-in price: whose servers ask it
	scope grant.Scope
}

// Rates are nano-dollars (10^-9 US dollars) for each token: a price of 2 dollars for a
// million tokens is 2000.
type Rates struct {
	In             int64
	Cached         int64
	CacheWrite     int64
	CacheWriteLong int64 // for the longer of the provider's times in the cache
	Out            int64
	Reasoning      int64
}

// free is the price of clove's own providers.
var free = &Price{Model: "*", Source: "clove"}

// standardTiers are the words of providers for the tier that costs the price itself, and
// Anthropic's for a place of inference that does. auto is asked for, never reported.
var standardTiers = []string{"", "auto", "default", "standard", "standard_only", "global", "not_available"}

// tierNames are what a price depends on beside tokens. Of the other words of requests, the
// times in the cache have rates of their own.
var tierNames = []string{"service_tier", "speed", "inference_geo"}

// Cost returns what a call costs, in millionths of a US dollar. The sum of the call is
// rounded up, and is at most budget.MaxAmount. Tiers are NAME=VALUE, as requests and answers
// have them, and their factors are multiplied. An unknown tier costs as much as the most
// expensive known one. Negative numbers of tokens count as 0.
func (p *Price) Cost(u models.Usage, tiers ...string) int64 {
	input := new(big.Int)
	for _, n := range []int64{u.In, u.Cached, u.CacheWrite} {
		input.Add(input, tokens(n))
	}
	r := p.rates(input)
	sum := new(big.Int)
	// Reasoning is a part of Out. A report with more of it than of Out is wrong; what it says
	// of Out is counted then.
	reasoning := min(max(u.Reasoning, 0), max(u.Out, 0))
	long := min(max(u.CacheWriteLong, 0), max(u.CacheWrite, 0))
	for _, row := range []struct{ n, rate int64 }{
		{u.In, r.In}, {u.Cached, r.Cached}, {u.CacheWrite - long, r.CacheWrite}, {long, r.CacheWriteLong}, {u.Out - reasoning, r.Out}, {reasoning, r.Reasoning},
	} {
		sum.Add(sum, new(big.Int).Mul(tokens(row.n), big.NewInt(row.rate)))
	}
	return micros(sum, p.multiplier(tiers))
}

// Most returns the most that a call can cost in the tiers that it asks for, with so many tokens of input of any
// kind and of output, in millionths of a US dollar. Before a call nobody knows which part of
// its input is cached, nor for how long: the highest rate is taken for all of it. A provider
// may give a dearer tier than a cheap one that is asked for, so none makes the sum smaller.
func (p *Price) Most(in, out int64, tiers ...string) int64 {
	r := p.rates(tokens(in))
	sum := new(big.Int).Mul(tokens(in), big.NewInt(max(r.In, r.Cached, r.CacheWrite, r.CacheWriteLong)))
	sum.Add(sum, new(big.Int).Mul(tokens(out), big.NewInt(max(r.Out, r.Reasoning))))
	return micros(sum, max(p.multiplier(tiers), 1000))
}

// rates returns the rates of a call with so much input.
func (p *Price) rates(input *big.Int) Rates {
	if p.Long != nil && input.Cmp(big.NewInt(p.LongAbove)) > 0 {
		return *p.Long
	}
	return p.Rates
}

// multiplier returns the thousandths of the price that tiers cost together.
func (p *Price) multiplier(tiers []string) int64 {
	product := int64(1000)
	for _, tier := range tiers {
		if name, value, found := strings.Cut(tier, "="); found && slices.Contains(tierNames, name) {
			product = (product*p.factor(value) + 999) / 1000
		}
	}
	return product
}

// factor returns the thousandths of the price that one tier costs.
func (p *Price) factor(tier string) int64 {
	if m, found := p.Tiers[tier]; found {
		return m
	}
	if slices.Contains(standardTiers, tier) {
		return 1000
	}
	return slices.Max(append(slices.Collect(maps.Values(p.Tiers)), 1000))
}

// tokens is a number that a provider reported, or an estimate. What is negative would pay for
// other tokens.
func tokens(n int64) *big.Int { return big.NewInt(max(n, 0)) }

// micros rounds nano-dollars times thousandths up to micro-dollars. The sum is a big.Int, as a
// provider may report any number of tokens; what no budget can hold is its highest amount.
func micros(nanos *big.Int, thousandths int64) int64 {
	const unit = 1_000_000 // nano-dollars of a micro-dollar, times 1000
	nanos.Mul(nanos, big.NewInt(thousandths))
	nanos.Add(nanos, big.NewInt(unit-1)).Quo(nanos, big.NewInt(unit))
	if !nanos.IsInt64() || nanos.Int64() > budget.MaxAmount {
		return budget.MaxAmount
	}
	return nanos.Int64()
}

// priceOf returns the first price of the table that fits; nil if none does.
func (c *Config) priceOf(p *Provider, name grant.Scope) *Price {
	i := slices.IndexFunc(c.prices, func(price *Price) bool { return price.fits(p, name) })
	switch {
	case i >= 0:
		return c.prices[i]
	case p.Own():
		return free
	}
	return nil
}

// fits reports whether p is the price of a model at a provider. A subscription has no price for a
// token but what the file says.
func (p *Price) fits(provider *Provider, name grant.Scope) bool {
	return p.isFor(provider, name) && (p.host == "" || provider.Subscription == nil)
}

func (p *Price) isFor(provider *Provider, name grant.Scope) bool {
	return (p.Provider == "" || p.Provider == provider.Name) && (p.Family == "" || p.Family == provider.Family) &&
		(p.host == "" || p.host == provider.Host()) && p.scope.Covers(name)
}

// addPrices puts the file's prices before the built-in ones.
func (c *Config) addPrices(f []priceFile) error {
	for i, row := range f {
		at := "prices." + strconv.Itoa(i)
		if row.Provider != "" && c.Providers[row.Provider] == nil {
			names := slices.Sorted(maps.Keys(c.Providers))
			return document.Wrong(document.Join(at, "provider"), document.Meant(row.Provider, names, "name a provider of this file"), "there is no provider %.64q", row.Provider)
		}
		price, err := row.price(at)
		if err != nil {
			return err
		}
		c.prices = append(c.prices, price)
	}
	for _, k := range builtin {
		c.prices = append(c.prices, k.prices()...)
	}
	return nil
}

// price checks one price of the file.
func (f priceFile) price(at string) (*Price, error) {
	p := &Price{Provider: f.Provider, Family: f.Family, Model: f.Model, Date: f.Date, Source: f.Source, Tiers: map[string]int64{}}
	var err error
	if p.scope, err = grant.NewScope("model", f.Model, grant.NoRights); err != nil {
		return nil, document.Wrong(document.Join(at, "model"), `write the provider's name of the model, or "*"`, "%.64q is not the name of a model", f.Model)
	}
	if (f.Provider == "") == (f.Family == "") {
		return nil, document.Wrong(at, "write provider: NAME, or family: openai or anthropic", "a price is of one provider or of one family")
	}
	if f.Family != "" && f.Family != models.OpenAI && f.Family != models.Anthropic {
		return nil, document.Wrong(document.Join(at, "family"), "use openai or anthropic", "%.64q is not the family of a provider", f.Family)
	}
	if _, err := time.Parse(time.DateOnly, f.Date); err != nil || f.Source == "" {
		return nil, document.Wrong(at, "write date: YYYY-MM-DD and source: TEXT", "a price has the date when it was read, and where")
	}
	for tier, m := range f.Tiers {
		p.Tiers[tier] = int64(m)
	}
	if p.Rates, err = f.rates(at); err != nil || f.Long == nil {
		return p, err
	}
	if f.Long.Above <= 0 {
		return nil, document.Wrong(document.Join(at, "long.above"), "write the number of input tokens above which these rates hold", "%d is not a number of tokens", f.Long.Above)
	}
	long, err := f.Long.rates(document.Join(at, "long"))
	p.Long, p.LongAbove = &long, f.Long.Above
	return p, err
}

// dearest bounds a rate: one dollar for a token.
const dearest = 1_000_000_000

// rates fills in the rates that the file leaves out. What is cached costs as other input,
// and reasoning as other output: it is never counted as free by mistake.
func (f ratesFile) rates(at string) (Rates, error) {
	if f.In == nil || f.Out == nil {
		return Rates{}, document.Wrong(at, "write in and out in nano-dollars for a token: 2 dollars for a million are 2000", "a price needs in and out")
	}
	or := func(rate *int64, otherwise int64) int64 {
		if rate == nil {
			return otherwise
		}
		return *rate
	}
	r := Rates{In: *f.In, Cached: or(f.Cached, *f.In), CacheWrite: or(f.CacheWrite, *f.In), Out: *f.Out, Reasoning: or(f.Reasoning, *f.Out)}
	r.CacheWriteLong = or(f.CacheWriteLong, r.CacheWrite)
	for _, rate := range []int64{r.In, r.Cached, r.CacheWrite, r.CacheWriteLong, r.Out, r.Reasoning} {
		if rate < 0 || rate > dearest {
			return r, document.Wrong(at, "write nano-dollars for a token: 2 dollars for a million are 2000", "%d is out of range", rate)
		}
	}
	return r, nil
}
