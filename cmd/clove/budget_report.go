package main

import (
	"encoding/csv"
	"strconv"

	"github.com/urfave/cli/v2"

	"clove.run/clove/api"
	"clove.run/clove/api/methods"
	"clove.run/clove/client"
	"clove.run/clove/kernel/budget"
)

// Flags of clove budget report.
const (
	flagFrom = "from"
	flagTo   = "to"
	flagCSV  = "csv"
)

// reportFlags are the flags of clove budget report and top.
func reportFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: flagFrom, Usage: "report: the first day (UTC), such as 2026-11-23"},
		&cli.StringFlag{Name: flagTo, Usage: "report: the last day"},
		&cli.BoolFlag{Name: flagCSV, Usage: "report: write comma-separated values"},
	}
}

// budgetReport prints what was spent by day, user and dimension.
func (p *program) budgetReport(c *cli.Context, d *client.Client) error {
	if c.Bool(flagCSV) && c.Bool(flagJSON) {
		return invalid(flagCSV, "choose one of --csv and --json", "the report has one form")
	}
	days, err := client.Collect(client.All(c.Context, d, methods.BudgetReport, api.BudgetReportParams{From: c.String(flagFrom), To: c.String(flagTo)}))
	switch {
	case err != nil:
		return err
	case c.Bool(flagJSON):
		return p.printJSON(append([]api.DaySum{}, days...))
	case c.Bool(flagCSV):
		return csv.NewWriter(p.out).WriteAll(dayRows(days, "day", "owner", "dimension", "used"))
	}
	return printTable(p.out, dayRows(days, "DAY", "OWNER", "DIMENSION", "USED"))
}

func dayRows(days []api.DaySum, head ...string) [][]string {
	rows := [][]string{head}
	for _, s := range days {
		rows = append(rows, []string{s.Day, strconv.FormatUint(uint64(s.Owner), 10), s.Dimension, strconv.FormatInt(s.Used, 10)})
	}
	return rows
}

// budgetTop prints who spends most now.
func (p *program) budgetTop(c *cli.Context, d *client.Client) error {
	var dimension budget.Dimension
	var err error
	if text := c.Args().Get(1); text != "" {
		if dimension, err = budget.ParseDimension(text); err != nil {
			return err
		}
	}
	top, err := client.Do(c.Context, d, methods.BudgetTop, api.BudgetTopParams{Dimension: string(dimension)})
	if err != nil {
		return err
	}
	if c.Bool(flagJSON) {
		return p.printJSON(append([]api.Spender{}, top.Spenders...))
	}
	rows := [][]string{{"DIMENSION", "LAST MINUTE", "AGENT", "OWNER", "NAMESPACE", "USED", "LIMIT"}}
	for _, s := range top.Spenders {
		rows = append(rows, []string{s.Dimension, strconv.FormatInt(s.LastMinute, 10), s.Name, strconv.FormatUint(uint64(s.Owner), 10), s.Namespace,
			strconv.FormatInt(s.Used, 10), amount(s.Granted)})
	}
	return printTable(p.out, rows)
}
