package config

import (
	"maps"
	"slices"
)

// PriceRow is a price and where it holds.
type PriceRow struct {
	Price
	Host    string // whose servers ask it; empty: any
	BuiltIn bool   // it is not of the file
	// Overridden are the providers, sorted, at which a row above it holds for all models that
	// it is for.
	Overridden []string
}

// PriceTable returns the prices in the order in which they are looked up. Rows for a provider
// that the user may not use are left out, and no other row names one.
func (c *Config) PriceTable(uid uint32, groups []uint32) []PriceRow {
	var rows []PriceRow
	for i, p := range c.prices {
		if own := c.Providers[p.Provider]; own != nil && !own.Allows(uid, groups) {
			continue
		}
		row := PriceRow{Price: *p, Host: p.host, BuiltIn: p.host != ""}
		for _, name := range slices.Sorted(maps.Keys(c.Providers)) {
			if provider := c.Providers[name]; provider.Allows(uid, groups) && c.overridden(i, provider) {
				row.Overridden = append(row.Overridden, name)
			}
		}
		rows = append(rows, row)
	}
	return rows
}

// overridden reports whether a price never holds at a provider that it is for.
func (c *Config) overridden(i int, at *Provider) bool {
	p := c.prices[i]
	return p.fits(at, p.scope) && slices.ContainsFunc(c.prices[:i], func(above *Price) bool { return above.fits(at, p.scope) })
}
