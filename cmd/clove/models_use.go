package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/methods"
	"clove.run/clove/client"
)

// modelsTest prints how a call of a model went. A failure is this command's.
func (p *program) modelsTest(c *cli.Context) error {
	name := c.Args().Get(1)
	r, err := ofModels(p, c, methods.ModelTest, api.ModelTestParams{Model: name}, func() (api.ModelTestResult, error) { return testAlone(c.Context, name) })
	switch {
	case err != nil:
		return err
	case r.Failure != nil:
		return failedTest(r)
	case c.Bool(flagJSON):
		return p.printJSON(r)
	}
	if !r.Reported {
		p.say("clove", cyan, "the provider does not say how many tokens it counts: these are estimated")
	}
	cost := "-"
	if r.CostMicros != nil {
		cost = money(*r.CostMicros)
	}
	return printTable(p.out, [][]string{
		{"MODEL", "PROVIDER", "AS", "FORMAT", "FIRST TOKEN", "TOTAL", "IN", "CACHED", "OUT", "COST"},
		{r.Model, r.Provider, r.Target, r.Format, took(r.FirstNS), took(r.TotalNS), decimal(r.TokensIn), decimal(r.TokensCached), decimal(r.TokensOut), cost},
	})
}

// testAlone tests a model without cloved.
func testAlone(ctx context.Context, name string) (r api.ModelTestResult, err error) {
	own, err := models(nil, nil)
	if err != nil {
		return r, err
	}
	defer own.Close()
	return own.Test(ctx, name)
}

// failedTest is the error of a model that cannot be called. What a provider says of itself
// may pass; the rest is the administrator's to mend.
func failedTest(r api.ModelTestResult) error {
	kind := agent.KindInvalid
	switch r.Failure.Reason {
	case api.FailedUnreachable, api.FailedTimeout, api.FailedLost, api.FailedBusy, api.FailedBroken:
		kind = agent.KindBusy
	}
	return &agent.Error{Kind: kind, Step: "model " + r.Model, Message: printable(r.Failure.Message), Hint: printable(r.Failure.Hint)}
}

// modelsTop prints who uses models now.
func (p *program) modelsTop(c *cli.Context, d *client.Client) error {
	top, err := client.Do(c.Context, d, methods.ModelTop, api.Nothing{})
	if err != nil {
		return err
	}
	if c.Bool(flagJSON) {
		return p.printJSON(append([]api.ModelRun{}, top.Runs...))
	}
	rows := [][]string{{"AGENT", "OWNER", "NAMESPACE", "MODELS", "IN FLIGHT", "WAITING", "CALLS", "IN", "OUT", "COST"}}
	for _, r := range top.Runs {
		rows = append(rows, []string{r.Name, strconv.FormatUint(uint64(r.Owner), 10), r.Namespace, strings.Join(r.Models, ","), strconv.Itoa(r.InFlight), strconv.Itoa(r.Waiting),
			decimal(r.Calls), decimal(r.TokensIn), decimal(r.TokensOut), money(r.CostMicros)})
	}
	return printTable(p.out, rows)
}

func decimal(n int64) string { return strconv.FormatInt(n, 10) }

// money is an amount of millionths of a US dollar.
func money(micros int64) string {
	return "$" + strings.TrimSuffix(strings.TrimRight(fmt.Sprintf("%d.%06d", micros/1_000_000, micros%1_000_000), "0"), ".")
}

// took is a time of a call, which nobody reads to the nanosecond.
func took(ns int64) string { return time.Duration(ns).Round(time.Millisecond).String() }
