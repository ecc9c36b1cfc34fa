package main

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/methods"
	"clove.run/clove/cmd/clove/verbs"
	"clove.run/clove/models/config"
	"clove.run/clove/models/control"
)

func modelsCommand() command {
	return command{
		task: "share", usage: "show the language models that agents can call",
		verbs: []verb{
			{line: "clove models list [-q] [--format TEMPLATE] [--json]",
				act: viewed(ask(methods.ModelList).without(ofFile[api.Nothing](modelsOf)), modelFormatHint, modelRows)},
			{line: "clove models test [--json] MODEL", act: ask(methods.ModelTest).without(testAlone).shows(showModelTest)},
			{line: "clove models prices [--json]", act: viewed(ask(methods.ModelPrices).without(ofFile[api.Nothing](pricesOf)), "", priceRows)},
			{line: "clove models top [--json]", act: ask(methods.ModelTop)},
		},
		description: "list shows what you may give an agent with clove run --model, and how its providers do: ok, failing (the last call\n" +
			"failed) or out (several failed in a row: others serve it meanwhile). test makes one small call of a model, with the\n" +
			"provider's key, and says how long it took and what it cost, or what to mend; it is for root, as no agent's budget pays.\n" +
			"prices shows dollars for a million tokens, with date and source; the first row that fits a model holds. top shows which\n" +
			"runs use models now, and what they used in the last minute. Without cloved, root sees what models.yaml says; top needs\n" +
			"cloved.",
		flags: []cli.Flag{
			&cli.BoolFlag{Name: flagQuiet, Aliases: []string{"q"}, Usage: "list: only their names", DisableDefaultText: true},
			value("", flagFormat, "", "list: write each by a Go template, such as '{{.Name}} {{.Providers}}' or 'table {{.Name}}\\t{{.Health}}'", ""),
			jsonFlag("write a JSON array; test: an object"),
		},
	}
}

func modelsOf(now *config.Config) api.ModelListResult {
	return api.ModelListResult{Models: control.List(now, agent.Owner{})}
}

func pricesOf(now *config.Config) api.ModelPricesResult {
	return api.ModelPricesResult{Prices: control.Prices(now, agent.Owner{})}
}

// ofFile answers root from models.yaml.
func ofFile[P, R any](answer func(*config.Config) R) func(*access, *line, error) (func(P) (R, error), error) {
	return func(_ *access, _ *line, missing error) (func(P) (R, error), error) {
		if os.Geteuid() != 0 {
			return nil, missing
		}
		now, err := loadModels()
		return func(P) (R, error) { return answer(now), nil }, err
	}
}

// modelFields is a model as tables and templates of --format have it.
type modelFields struct {
	Name      string `col:"NAME"`
	AliasOf   string `col:"ALIAS OF"`
	Providers string `col:"PROVIDERS"`
	Formats   string `col:"FORMATS"`
	Context   string `col:"CONTEXT"`
	MaxOutput string `col:"MAX OUTPUT"`
	Price     string `col:"PRICE"`
	Health    string `col:"HEALTH"`
}

const modelFormatHint = `write a template of .Name, .AliasOf, .Providers, .Formats, .Context, .MaxOutput, .Price and .Health, for example '{{.Name}} {{.Providers}}'; for JSON write --json`

func modelRows(all api.ModelListResult) (rows []modelFields) {
	for _, m := range all.Models {
		rows = append(rows, rowOfModel(m))
	}
	return rows
}

// rowOfModel shows a model. An unknown value is "-".
func rowOfModel(m api.Model) modelFields {
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

// joined are names without those that repeat the one before.
func joined(names []string) string { return strings.Join(slices.Compact(names), ",") }

func tokens(n int64) string {
	if n == 0 {
		return "-"
	}
	return strconv.FormatInt(n, 10)
}

// priceRow is a price as the table has it.
type priceRow struct {
	Model      string `col:"MODEL"`
	At         string `col:"AT"`
	In         string `col:"IN"`
	Cached     string `col:"CACHED"`
	CacheWrite string `col:"CACHE WRITE"`
	Out        string `col:"OUT"`
	Reasoning  string `col:"REASONING"`
	Above      string `col:"ABOVE"`
	Date       string `col:"DATE"`
	Overridden string `col:"OVERRIDDEN AT"`
	Source     string `col:"SOURCE"`
}

// priceRows has a row of its own for the rates of long inputs.
func priceRows(all api.ModelPricesResult) (rows []priceRow) {
	for _, price := range all.Prices {
		rows = append(rows, rowOfPrice(price, price.ModelRates, ""))
		if price.Long != nil {
			rows = append(rows, rowOfPrice(price, *price.Long, tokens(price.LongAbove)))
		}
	}
	return rows
}

func rowOfPrice(price api.ModelPrice, r api.ModelRates, above string) priceRow {
	write := dollars(r.CacheWrite)
	if r.CacheWriteLong != r.CacheWrite {
		write += "/" + dollars(r.CacheWriteLong)
	}
	return priceRow{price.Model, cmp.Or(price.Provider, price.Host, price.Family), dollars(r.In), dollars(r.Cached), write, dollars(r.Out), dollars(r.Reasoning),
		above, price.Date, strings.Join(price.Overridden, ","), price.Source}
}

// dollars is a rate, in nano-dollars for a token, as dollars for a million tokens.
func dollars(nanos int64) string {
	return strings.TrimSuffix(strings.TrimRight(fmt.Sprintf("%d.%03d", nanos/1000, nanos%1000), "0"), ".")
}

// showModelTest shows how a call of a model went. A failure is this command's.
func showModelTest(s *screen, l *line, r api.ModelTestResult) error {
	switch {
	case r.Failure != nil:
		return failedTest(r)
	case l.Bool(flagJSON):
		return s.printJSON(r)
	}
	if !r.Reported {
		s.say("clove", cyan, "the provider does not say how many tokens it counts: these are estimated")
	}
	rows, _ := verbs.Rows([]api.ModelTestResult{r}, forms(), nil)
	return printTable(s.out, rows)
}

// testAlone tests a model without cloved, for root.
func testAlone(_ *access, l *line, missing error) (func(api.ModelTestParams) (api.ModelTestResult, error), error) {
	if os.Geteuid() != 0 {
		return nil, missing
	}
	return func(params api.ModelTestParams) (r api.ModelTestResult, err error) {
		own, err := models(nil, nil)
		if err != nil {
			return r, err
		}
		defer own.Close()
		return own.Test(l.Context.Context, params.Model)
	}, nil
}

// failedTest is the error of a model that cannot be called. A failure of the provider
// may pass; any other is the administrator's to mend.
func failedTest(r api.ModelTestResult) error {
	kind := agent.KindInvalid
	switch r.Failure.Reason {
	case api.FailedUnreachable, api.FailedTimeout, api.FailedLost, api.FailedBusy, api.FailedBroken:
		kind = agent.KindBusy
	}
	return &agent.Error{Kind: kind, Step: "model " + r.Model, Message: printable(r.Failure.Message), Hint: printable(r.Failure.Hint)}
}

// money is an amount of millionths of a US dollar.
func money(micros int64) string {
	return "$" + strings.TrimSuffix(strings.TrimRight(fmt.Sprintf("%d.%06d", micros/1_000_000, micros%1_000_000), "0"), ".")
}

// took is a time of a call, to the millisecond.
func took(ns int64) string { return time.Duration(ns).Round(time.Millisecond).String() }
