package config

import (
	"clove.run/clove/kernel/grant"
	"clove.run/clove/models"
)

// known is what clove knows of one model without a file: of the model itself and of its
// dated snapshots, NAME-20….
type known struct {
	name string
	Rates
	long      long
	tiers     map[string]int64
	context   int64 // tokens of input and output together
	maxOutput int64
	from      source
}

// long are the factors, in thousandths, for the rates of a call whose input has more tokens.
type long struct{ above, in, out int64 }

// source is where a price was read, and whose servers ask it.
type source struct {
	family models.Family
	host   string
	date   string // the latest day on which the page is known to have said so
	url    string
}

var (
	claude       = source{models.Anthropic, "api.anthropic.com", "2026-10-24", "https://platform.claude.com/docs/en/about-claude/pricing"}
	openai       = source{models.OpenAI, "api.openai.com", "2026-11-19", "https://developers.openai.com/api/docs/models"}
	openaiSummer = source{models.OpenAI, "api.openai.com", "2026-07-24", "https://developers.openai.com/api/docs/pricing, as in litellm's model_prices_and_context_window.json"}
)

// The tiers and the prices of long inputs that several models share, in thousandths. OpenAI
// sells the tier "priority" as fast mode.
var (
	batched = map[string]int64{"batch": 500}
	doubled = map[string]int64{"batch": 500, "flex": 500, "priority": 2000, "fast": 2000}
	over272 = long{above: 272_000, in: 2000, out: 1500}
)

// builtin is the built-in table. Rates are in the order In, Cached, CacheWrite,
// CacheWriteLong, Out, Reasoning, in nano-dollars for a token. A model whose price is not
// known from the provider's own pages is left out.
var builtin = []known{
	{"claude-fable-5-1", Rates{10_000, 250, 12_500, 20_000, 50_000, 50_000}, long{}, batched, 1_000_000, 128_000, claude},
	// Its sizes are from https://platform.claude.com/docs/en/models/fable-5/overview.
	{"claude-fable-5", Rates{10_000, 1000, 12_500, 20_000, 50_000, 50_000}, long{}, batched, 1_000_000, 128_000, claude},
	{"claude-opus-5-5", Rates{4000, 200, 5000, 8000, 20_000, 20_000}, long{}, batched, 1_000_000, 128_000, claude},
	{"claude-opus-5", Rates{5000, 500, 6250, 10_000, 25_000, 25_000}, long{}, batched, 1_000_000, 128_000, claude},
	{"claude-opus-4-8", Rates{5000, 500, 6250, 10_000, 25_000, 25_000}, long{}, batched, 1_000_000, 128_000, claude},
	{"claude-opus-4-7", Rates{5000, 500, 6250, 10_000, 25_000, 25_000}, long{}, batched, 1_000_000, 128_000, claude},
	{"claude-opus-4-6", Rates{5000, 500, 6250, 10_000, 25_000, 25_000}, long{}, batched, 1_000_000, 128_000, claude},
	{"claude-opus-4-5", Rates{5000, 500, 6250, 10_000, 25_000, 25_000}, long{}, batched, 200_000, 64_000, claude},
	{"claude-sonnet-5-5", Rates{2000, 100, 2500, 4000, 10_000, 10_000}, long{}, batched, 1_000_000, 128_000, claude},
	{"claude-sonnet-5", Rates{2000, 200, 2500, 4000, 10_000, 10_000}, long{}, batched, 1_000_000, 128_000, claude},
	{"claude-sonnet-4-6", Rates{3000, 300, 3750, 6000, 15_000, 15_000}, long{}, batched, 1_000_000, 64_000, claude},
	{"claude-sonnet-4-5", Rates{3000, 300, 3750, 6000, 15_000, 15_000}, long{above: 200_000, in: 2000, out: 1500}, batched, 200_000, 64_000, claude},
	{"claude-haiku-5-5", Rates{100, 10, 125, 200, 500, 500}, long{above: 100_000, in: 5000, out: 5000}, batched, 1_000_000, 128_000, claude},
	{"claude-haiku-4-5", Rates{1000, 100, 1250, 2000, 5000, 5000}, long{}, batched, 200_000, 64_000, claude},

	// ultrafast costs 3 times the price until 2027-02-28, and 6 times from then on.
	{"gpt-6.2-sol", Rates{2000, 100, 2500, 5000, 10_000, 10_000}, over272, map[string]int64{"batch": 500, "priority": 2000, "fast": 2000, "ultrafast": 6000}, 1_050_000, 128_000, openai},
	{"gpt-6-astra", Rates{10_000, 1000, 12_500, 12_500, 50_000, 50_000}, over272, doubled, 1_050_000, 128_000, openai},
	{"gpt-6-luna", Rates{100, 10, 125, 125, 500, 500}, over272, doubled, 1_050_000, 128_000, openai},
	{"gpt-5.6-luna", Rates{200, 20, 250, 250, 1200, 1200}, over272, doubled, 1_050_000, 128_000, openai},
	{"gpt-5.5", Rates{5000, 500, 5000, 5000, 30_000, 30_000}, over272, map[string]int64{"batch": 500, "flex": 500, "priority": 2500, "fast": 2500}, 1_050_000, 128_000, openaiSummer},
	{"gpt-5.4", Rates{2500, 250, 2500, 2500, 15_000, 15_000}, over272, doubled, 1_050_000, 128_000, openaiSummer},
	{"gpt-5.4-mini", Rates{750, 75, 750, 750, 4500, 4500}, long{}, doubled, 400_000, 128_000, openaiSummer},
	{"gpt-5.4-nano", Rates{200, 20, 200, 200, 1250, 1250}, long{}, batched, 400_000, 128_000, openai},
	{"gpt-5.2", Rates{1750, 175, 1750, 1750, 14_000, 14_000}, long{}, doubled, 400_000, 128_000, openaiSummer},
	{"gpt-5.1", Rates{1250, 125, 1250, 1250, 10_000, 10_000}, long{}, doubled, 400_000, 128_000, openaiSummer},
	{"gpt-5", Rates{1250, 125, 1250, 1250, 10_000, 10_000}, long{}, doubled, 400_000, 128_000, openaiSummer},
	{"gpt-5-mini", Rates{250, 25, 250, 250, 2000, 2000}, long{}, map[string]int64{"batch": 500, "flex": 500, "priority": 1800, "fast": 1800}, 400_000, 128_000, openaiSummer},
	{"gpt-4.1", Rates{2000, 500, 2000, 2000, 8000, 8000}, long{}, map[string]int64{"batch": 500, "priority": 1750, "fast": 1750}, 1_047_576, 32_768, openaiSummer},
	{"gpt-4.1-mini", Rates{400, 100, 400, 400, 1600, 1600}, long{}, map[string]int64{"batch": 500, "priority": 1750, "fast": 1750}, 1_047_576, 32_768, openaiSummer},
	{"gpt-4.1-nano", Rates{100, 25, 100, 100, 400, 400}, long{}, doubled, 1_047_576, 32_768, openaiSummer},
	{"gpt-4o", Rates{2500, 1250, 2500, 2500, 10_000, 10_000}, long{}, map[string]int64{"batch": 500, "priority": 1700, "fast": 1700}, 128_000, 16_384, openaiSummer},
	{"gpt-4o-mini", Rates{150, 75, 150, 150, 600, 600}, long{}, map[string]int64{"batch": 500, "priority": 1700, "fast": 1700}, 128_000, 16_384, openaiSummer},
}

// prices returns the rows of the price table for k.
func (k known) prices() []*Price {
	var rows []*Price
	for _, pattern := range []string{k.name, k.name + "-20*"} {
		scope, err := grant.NewScope("model", pattern, grant.NoRights)
		if err != nil {
			continue // TestBuiltinPrices: there is none
		}
		p := &Price{Family: k.from.family, Model: pattern, Rates: k.Rates, Tiers: k.tiers, Date: k.from.date, Source: k.from.url, host: k.from.host, scope: scope}
		if k.long.above > 0 {
			p.Long, p.LongAbove = k.long.of(k.Rates), k.long.above
		}
		rows = append(rows, p)
	}
	return rows
}

func (l long) of(r Rates) *Rates {
	return &Rates{In: r.In * l.in / 1000, Cached: r.Cached * l.in / 1000, CacheWrite: r.CacheWrite * l.in / 1000,
		CacheWriteLong: r.CacheWriteLong * l.in / 1000, Out: r.Out * l.out / 1000, Reasoning: r.Reasoning * l.out / 1000}
}

// knownFor returns what is known of a model at a provider; nil if nothing is.
func knownFor(p *Provider, name grant.Scope) *known {
	for i := range builtin {
		for _, price := range builtin[i].prices() {
			if price.isFor(p, name) {
				return &builtin[i]
			}
		}
	}
	return nil
}
