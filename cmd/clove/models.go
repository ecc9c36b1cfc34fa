package main

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/methods"
	"clove.run/clove/client"
	"clove.run/clove/models/config"
	"clove.run/clove/models/control"
)

const modelsName = "models"

// modelsWords are what clove models does.
var modelsWords = map[string]word{
	"list":   {flags: []string{flagQuiet, flagFormat, flagJSON}, do: (*program).modelsList},
	"test":   {flags: []string{flagJSON}, least: 1, do: (*program).modelsTest},
	"prices": {flags: []string{flagJSON}, do: (*program).modelsPrices},
	"top":    {flags: []string{flagJSON}, do: onCloved((*program).modelsTop)},
}

func (p *program) modelsCommand() *cli.Command {
	return &cli.Command{
		Name: modelsName, Usage: "show the language models that agents can call",
		UsageText: "clove models list [-q] [--format TEMPLATE] [--json]\nclove models test [--json] NAME\nclove models prices [--json]\nclove models top [--json]",
		Description: "list shows what you may give an agent with clove run --model, and how its providers do: ok, failing (the last call\n" +
			"failed) or out (several failed in a row: others serve it meanwhile). test makes one small call of a model, with the\n" +
			"provider's key, and says how long it took and what it cost, or what to mend; it is for root, as no agent's budget pays.\n" +
			"prices shows dollars for a million tokens, with date and source; the first row that fits a model holds. top shows which\n" +
			"runs use models now, and what they used in the last minute. Without cloved, root sees what models.yaml says; top needs\n" +
			"cloved.",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: flagQuiet, Aliases: []string{"q"}, Usage: "list: only their names", DisableDefaultText: true},
			value("", flagFormat, "", "list: write each by a Go template, such as '{{.Name}} {{.Providers}}' or 'table {{.Name}}\\t{{.Health}}'", ""),
			jsonFlag("write a JSON array; test: an object"),
		},
		Action: p.models,
	}
}

func (p *program) models(c *cli.Context) error {
	return p.doWord(c, modelsWords, "clove models list, test NAME, prices or top")
}

// ofModels asks cloved, or, where none runs, has root look itself.
func ofModels[P, R any](p *program, c *cli.Context, row api.Row[P, R], params P, look func() (R, error)) (result R, err error) {
	d, err := p.cloved(c)
	if err == nil {
		defer d.Close()
		return client.Do(c.Context, d, row, params)
	}
	if agent.KindOf(err) != agent.KindNotFound || os.Geteuid() != 0 {
		return result, err
	}
	return look()
}

// ofFile answers root from models.yaml.
func ofFile[R any](answer func(*config.Config) R) func() (R, error) {
	return func() (result R, err error) {
		now, err := loadModels()
		if err != nil {
			return result, err
		}
		return answer(now), nil
	}
}

// modelFields are the names that a template of --format may use.
type modelFields struct {
	Name, AliasOf, Providers, Formats, Context, MaxOutput, Price, Health string
}

var modelHeadings = modelFields{"NAME", "ALIAS OF", "PROVIDERS", "FORMATS", "CONTEXT", "MAX OUTPUT", "PRICE", "HEALTH"}

const modelFormatHint = `write a template of .Name, .AliasOf, .Providers, .Formats, .Context, .MaxOutput, .Price and .Health, for example '{{.Name}} {{.Providers}}'; for JSON write --json`

func (p *program) modelsList(c *cli.Context) error {
	format, err := formatOf(c, modelHeadings, modelFormatHint)
	if err != nil {
		return err
	}
	all, err := ofModels(p, c, methods.ModelList, api.Nothing{}, ofFile(func(now *config.Config) api.ModelListResult {
		return api.ModelListResult{Models: control.List(now, agent.Owner{})}
	}))
	if err != nil {
		return err
	}
	rows := []any{}
	for _, m := range all.Models {
		rows = append(rows, fieldsOfModel(m))
	}
	switch {
	case format != nil:
		return format.print(p.out, rows)
	case c.Bool(flagJSON):
		return p.printJSON(append([]api.Model{}, all.Models...))
	case c.Bool(flagQuiet):
		format, err = parseFormat("{{.Name}}", modelHeadings, modelFormatHint)
	default:
		format, err = parseFormat(`table {{.Name}}\t{{.AliasOf}}\t{{.Providers}}\t{{.Formats}}\t{{.Context}}\t{{.MaxOutput}}\t{{.Price}}\t{{.Health}}`, modelHeadings, modelFormatHint)
	}
	if err != nil {
		return err
	}
	return format.print(p.out, rows)
}

// fieldsOfModel shows a model. What is unknown is "-".
func fieldsOfModel(m api.Model) modelFields {
	f := modelFields{Name: printable(m.Name), AliasOf: printable(m.AliasOf), Context: tokens(m.Context), MaxOutput: tokens(m.MaxOut), Price: "unknown"}
	if m.Priced {
		f.Price = "known"
	}
	var providers, families, health []string
	for _, t := range m.Targets {
		providers, health = append(providers, printable(t.Provider)), append(health, cmp.Or(t.Health, "-"))
	}
	for _, format := range m.Formats { // openai-chat is of openai
		family, _, _ := strings.Cut(format, "-")
		families = append(families, family)
	}
	// A target of the same provider is not named twice in a row; health is that of each target.
	f.Providers, f.Formats, f.Health = joined(providers), joined(families), joined(health)
	return f
}

// joined are words without those that repeat the one before.
func joined(words []string) string { return strings.Join(slices.Compact(words), ",") }

func tokens(n int64) string {
	if n == 0 {
		return "-"
	}
	return strconv.FormatInt(n, 10)
}

func (p *program) modelsPrices(c *cli.Context) error {
	all, err := ofModels(p, c, methods.ModelPrices, api.Nothing{}, ofFile(func(now *config.Config) api.ModelPricesResult {
		return api.ModelPricesResult{Prices: control.Prices(now, agent.Owner{})}
	}))
	if err != nil {
		return err
	}
	if c.Bool(flagJSON) {
		return p.printJSON(append([]api.ModelPrice{}, all.Prices...))
	}
	rows := [][]string{{"MODEL", "AT", "IN", "CACHED", "CACHE WRITE", "OUT", "REASONING", "ABOVE", "DATE", "OVERRIDDEN AT", "SOURCE"}}
	for _, price := range all.Prices {
		rows = append(rows, priceRow(price, price.ModelRates, ""))
		if price.Long != nil {
			rows = append(rows, priceRow(price, *price.Long, tokens(price.LongAbove)))
		}
	}
	return printTable(p.out, rows)
}

// priceRow has the rates of a price, those for long inputs in a row of their own.
func priceRow(price api.ModelPrice, r api.ModelRates, above string) []string {
	write := dollars(r.CacheWrite)
	if r.CacheWriteLong != r.CacheWrite {
		write += "/" + dollars(r.CacheWriteLong)
	}
	return []string{price.Model, cmp.Or(price.Provider, price.Host, price.Family), dollars(r.In), dollars(r.Cached), write, dollars(r.Out), dollars(r.Reasoning),
		above, price.Date, strings.Join(price.Overridden, ","), price.Source}
}

// dollars is a rate, in nano-dollars for a token, as dollars for a million tokens.
func dollars(nanos int64) string {
	return strings.TrimSuffix(strings.TrimRight(fmt.Sprintf("%d.%03d", nanos/1000, nanos%1000), "0"), ".")
}
