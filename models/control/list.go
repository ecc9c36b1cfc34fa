package control

import (
	"slices"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/models"
	"clove.run/clove/models/config"
)

// List returns the models that a user may call, with their health.
func (c *Control) List(owner agent.Owner) []api.Model {
	return list(c.desk.Config(), owner, func(t config.Target) string { return c.desk.health.word(t, owner) })
}

// Prices returns the price table for a user.
func (c *Control) Prices(owner agent.Owner) []api.ModelPrice {
	return Prices(c.desk.Config(), owner)
}

// List returns the models that a user may call, where nothing serves them yet.
func List(c *config.Config, owner agent.Owner) []api.Model {
	return list(c, owner, func(config.Target) string { return "" })
}

func list(c *config.Config, owner agent.Owner, health func(config.Target) string) []api.Model {
	all, of := []api.Model{}, groups(owner)
	for _, name := range c.Names(owner.UID, of) {
		targets, err := c.Resolve(name, owner.UID, of)
		if err != nil {
			continue // Names returns none of these
		}
		m := api.Model{Name: name, Priced: true, Formats: formats(targets)}
		if targets[0].Name != name {
			m.AliasOf = targets[0].Name
		}
		for _, t := range targets {
			m.Priced = m.Priced && t.Price != nil
			m.Context, m.MaxOut = least(m.Context, t.Context), least(m.MaxOut, t.MaxOutput)
			m.Targets = append(m.Targets, api.ModelTarget{Provider: t.Provider.Name, Model: t.Model, Weight: t.Weight, Fallback: t.Fallback,
				Priced: t.Price != nil, Health: health(t)})
		}
		all = append(all, m)
	}
	return all
}

// least is the smaller of two bounds, of which 0 is none.
func least(a, b int64) int64 {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}

// formats are those that one of the targets speaks.
func formats(targets []config.Target) []string {
	all := []string{}
	for _, f := range []models.Format{models.OpenAIChat, models.OpenAIResponses, models.AnthropicMessages, models.AnthropicCount} {
		if slices.ContainsFunc(targets, func(t config.Target) bool { return t.Provider.Speaks(f) }) {
			all = append(all, string(f))
		}
	}
	return all
}

// Prices returns the price table of a configuration for a user.
func Prices(c *config.Config, owner agent.Owner) []api.ModelPrice {
	all := []api.ModelPrice{}
	for _, row := range c.PriceTable(owner.UID, groups(owner)) {
		p := api.ModelPrice{Provider: row.Provider, Family: string(row.Family), Host: row.Host, Model: row.Model, ModelRates: api.ModelRates(row.Rates),
			LongAbove: row.LongAbove, Tiers: row.Tiers, Date: row.Date, Source: row.Source, BuiltIn: row.BuiltIn, Overridden: row.Overridden}
		if row.Long != nil {
			long := api.ModelRates(*row.Long)
			p.Long = &long
		}
		all = append(all, p)
	}
	return all
}

// Activity returns that of each run that is served, in no order.
func (c *Control) Activity() []Activity {
	all := []Activity{}
	for _, s := range c.runs.each() {
		all = append(all, s.activity())
	}
	return all
}

// Used returns what the calls of a run that is served have used so far, and a channel with a
// value behind each change; one reader may have it.
func (c *Control) Used(run agent.ID) (soFar func() []agent.ModelUse, changed <-chan struct{}) {
	s := c.runs.get(run)
	if s == nil { // it has ended
		return func() []agent.ModelUse { return nil }, nil
	}
	return s.tally.total, s.tally.changed
}

// Loads returns how many calls wait and are being made now, by provider: of each in the
// configuration, and of others that still have calls.
func (c *Control) Loads() map[string]Load {
	all := c.desk.loads.now()
	for name := range c.desk.Config().Providers {
		if _, busy := all[name]; !busy {
			all[name] = Load{}
		}
	}
	return all
}
