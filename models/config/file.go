package config

import (
	"encoding/json"
	"strings"
	"time"

	"clove.run/clove/internal/document"
	"clove.run/clove/models"
)

// file is models.yaml as it is written; docs/models.yaml says what each key means. The types
// here are only decoded: the ones that others use are checked and complete.
type file struct {
	Providers map[string]providerFile `json:"providers"`
	Models    map[string]modelFile    `json:"models"`
	Aliases   map[string]string       `json:"aliases"`
	Prices    []priceFile             `json:"prices"`
}

type providerFile struct {
	Family       models.Family       `json:"family"`
	URL          string              `json:"url"`
	Plain        bool                `json:"plain"`
	Script       string              `json:"script"`
	Key          string              `json:"key"`
	Subscription string              `json:"subscription"`
	Account      string              `json:"account"`
	CA           string              `json:"ca"`
	Users        []principal         `json:"users"`
	Groups       []principal         `json:"groups"`
	Budgets      map[string][]string `json:"budgets"`
	Limits       Limits              `json:"limits"`
	Timeouts     timeoutsFile        `json:"timeouts"`
}

type timeoutsFile struct {
	First   Duration `json:"first"`
	Between Duration `json:"between"`
	Total   Duration `json:"total"`
}

type modelFile struct {
	Targets   []targetFile `json:"targets"`
	Factor    float64      `json:"factor"`
	Context   int64        `json:"context"`
	MaxOutput int64        `json:"max_output"`
	Limits    Limits       `json:"limits"`
}

type targetFile struct {
	Provider string `json:"provider"`
	Model    string `json:"model"`
	Weight   *int   `json:"weight"` // nil is 1, and 0 has a meaning
	Fallback int    `json:"fallback"`
}

type priceFile struct {
	Provider string        `json:"provider"`
	Family   models.Family `json:"family"`
	Model    string        `json:"model"`
	ratesFile
	Long   *longFile            `json:"long"`
	Tiers  map[string]thousands `json:"tiers"`
	Date   string               `json:"date"`
	Source string               `json:"source"`
}

type longFile struct {
	Above int64 `json:"above"`
	ratesFile
}

// ratesFile has pointers where an absent rate is not 0.
type ratesFile struct {
	In             *int64 `json:"in"`
	Cached         *int64 `json:"cached"`
	CacheWrite     *int64 `json:"cache_write"`
	CacheWriteLong *int64 `json:"cache_write_long"`
	Out            *int64 `json:"out"`
	Reasoning      *int64 `json:"reasoning"`
}

// principal is a user or a group: a name or a number. YAML makes a number of 1000, and a text
// of "1000": both are the same user.
type principal string

func (p *principal) UnmarshalJSON(text []byte) error {
	if number := string(text); strings.Trim(number, "0123456789") == "" {
		*p = principal(number)
		return nil
	}
	return json.Unmarshal(text, (*string)(p))
}

// Duration is a time in a file, from 1ms to 24h, with its unit: 90s.
type Duration time.Duration

// UnmarshalJSON fails with an error of KindInvalid.
func (d *Duration) UnmarshalJSON(text []byte) error {
	parsed, err := time.ParseDuration(strings.Trim(string(text), `"`))
	if err != nil || parsed < time.Millisecond || parsed > longest {
		return document.Wrong("", "write a time from 1ms to 24h with its unit, for example 90s", "%.64s is not a time", text)
	}
	*d = Duration(parsed)
	return nil
}

// longest bounds a time: a reservation stands as long.
const longest = 24 * time.Hour

// thousands is a decimal number times 1000, exactly: a binary fraction would make 1.1 times a
// price a nano-dollar more or less than the provider's bill.
type thousands int64

func (t *thousands) UnmarshalJSON(text []byte) error {
	whole, part, _ := strings.Cut(string(text), ".")
	number := json.Number(whole + (part + "000")[:max(3, len(part))])
	parsed, err := number.Int64()
	if err != nil || len(part) > 3 || parsed < 0 || parsed > 100_000 {
		return document.Wrong("", "write a factor from 0 to 100 with at most three decimals, for example 0.5", "%.64s is not a factor of a price", text)
	}
	*t = thousands(parsed)
	return nil
}
