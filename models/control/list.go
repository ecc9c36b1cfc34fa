package control

import (
	"slices"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/models"
	"clove.run/clove/models/config"
)

// List returns the models that a user may call, with their health.
func (c *Control) List(owner agent.Owner) []api.Model {
	return list(c.options.Config(), owner, func(t config.Target) string { return c.health.word(t, owner) })
}

// Prices returns the price table for a user.
func (c *Control) Prices(owner agent.Owner) []api.ModelPrice {
	return Prices(c.options.Config(), owner)
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
		if slices.ContainsFunc(targets, func(t config.Target) bool { return t.Provider.Speaks(f.Family()) }) {
			all = append(all, string(f))
		}
	}
	return all
}

// word is how a target does for a user's agents; for everybody's, if it is root who asks.
func (h *health) word(t config.Target, asks agent.Owner) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	sees := func(owner uint32) bool { return asks.UID == 0 || asks.UID == owner }
	switch failing, out := h.routes.State(routeName(t), sees, time.Now()); {
	case out:
		return api.HealthOut
	case failing:
		return api.HealthFailing
	}
	return api.HealthOK
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
