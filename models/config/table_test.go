package config

import (
	"fmt"
	"testing"
)

const tables = `
providers:
  openai: {family: openai, url: "https://api.openai.com/v1", users: ["*"]}
  second: {family: openai, url: "https://api.openai.com/v1", users: ["1000"]}
  local: {family: openai, url: "http://127.0.0.1:1/v1", plain: true, users: ["*"]}
prices:
- {provider: second, model: gpt-5*, in: 1, out: 1, date: 2026-11-23, source: a contract}
- {family: openai, model: gpt-4.1, in: 2, out: 2, date: 2026-11-23, source: a contract}
- {provider: local, model: gpt-4.1, in: 0, out: 0, date: 2026-11-23, source: ours}
`

// The first row that fits holds: a row says at which providers one above it does.
func TestPriceTable(t *testing.T) {
	t.Parallel()
	c := parsed(t, tables)
	for uid, want := range map[uint32]map[string]string{
		0:    {"second gpt-5*": "[]", "openai gpt-4.1": "[]", "local gpt-4.1": "[local]", "api.openai.com gpt-5": "[second]", "api.openai.com gpt-5-20*": "[second]", "api.openai.com gpt-4.1": "[openai second]", "api.openai.com gpt-4.1-20*": "[]", "api.anthropic.com claude-opus-5": "[]"},
		1000: {"second gpt-5*": "[]", "api.openai.com gpt-4.1": "[openai second]"},
		2000: {"second gpt-5*": "", "local gpt-4.1": "[local]", "api.openai.com gpt-5": "[]", "api.openai.com gpt-4.1": "[openai]"},
	} {
		got := map[string]string{}
		for _, row := range c.PriceTable(uid, nil) {
			at := row.Provider
			if at == "" {
				at = row.Host
			}
			if at == "" {
				at = string(row.Family)
			}
			got[at+" "+row.Model] = fmt.Sprint(row.Overridden)
			if row.BuiltIn != (row.Host != "") || row.BuiltIn == (row.Source == "a contract" || row.Source == "ours") {
				t.Errorf("%+v", row)
			}
		}
		for name, overridden := range want {
			if got[name] != overridden {
				t.Errorf("%d: %s is overridden at %s, want %s", uid, name, got[name], overridden)
			}
		}
	}
}
