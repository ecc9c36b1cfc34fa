package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"clove.run/clove/api"
	"clove.run/clove/api/agents"
	"clove.run/clove/api/methods"
	"clove.run/clove/client"
	"clove.run/clove/kernel/budget"
)

const budgetName = "budget"

// budgetWords are what clove budget does.
var budgetWords = map[string]word{
	"show":  {flags: []string{flagJSON}, least: 1, do: onCloved((*program).budgetShow)},
	"raise": {flags: []string{flagJSON}, least: 2, most: anyNumber, do: onCloved((*program).budgetRaise)},
	"reset": {flags: []string{flagJSON}, least: 2, most: anyNumber, do: onCloved((*program).budgetReset)},
	"set":   {flags: []string{flagAtEnd, flagJSON}, least: 2, most: anyNumber, do: onCloved((*program).budgetSet)},
	"list":  {flags: []string{flagJSON}, most: 1, do: onCloved((*program).budgetList)},

	"report": {flags: []string{flagFrom, flagTo, flagCSV, flagJSON}, do: onCloved((*program).budgetReport)},
	"top":    {flags: []string{flagJSON}, most: 1, do: onCloved((*program).budgetTop)},
}

func (p *program) budgetCommand() *cli.Command {
	return &cli.Command{
		Name: budgetName, Usage: "show and change what an agent may spend",
		UsageText: "clove budget show [--json] AGENT\nclove budget raise [--json] AGENT DIMENSION=AMOUNT...\nclove budget reset [--json] AGENT|ACCOUNT DIMENSION...\n" +
			"clove budget set [--at-end WHAT] [--json] ACCOUNT BUDGET...\nclove budget list [--json] [ACCOUNT]\n" +
			"clove budget report [--from DAY] [--to DAY] [--csv|--json]\nclove budget top [--json] [DIMENSION]",
		Description: "AGENT is the name or id of a run. show lists every line that it spends from: its own, and those of its name, its\n" +
			"namespace and its owner. raise adds an amount to the run's own limit, such as tokens=20k, cost=0.50usd, cpu_ms=90s or\n" +
			"write_bytes=1G: a run that was paused for it continues. reset sets what was used back to zero, of a run or of an\n" +
			"ACCOUNT. Only the user who set a limit may raise or reset it, and root. Amounts are shown in the unit of the dimension.\n" +
			"set limits what several runs spend together: ACCOUNT is name:NAME, ns:NAMESPACE or a user's number, for root also\n" +
			"UID/name:NAME and UID/ns:NAMESPACE, for reset also UID/provider:NAME. A BUDGET is that of clove run --budget. list shows an account and all below it;\n" +
			"without one, all that you may see.\n" +
			"report sums up what was spent by day (UTC), owner and dimension, top shows which runs spent most of each dimension in\n" +
			"the last minute; root sees everybody's, others their own.",
		Flags: append(reportFlags(),
			value("", flagAtEnd, "", "set: what happens to a run when nothing is left: end, pause or refuse", "end"),
			jsonFlag("write the lines as a JSON array"),
		),
		Action: p.budget,
	}
}

func (p *program) budget(c *cli.Context) error {
	return p.doWord(c, budgetWords, "clove budget show AGENT, raise AGENT DIMENSION=AMOUNT, reset AGENT DIMENSION, set ACCOUNT BUDGET, list, report or top")
}

func (p *program) budgetShow(c *cli.Context, d *client.Client) error {
	answer, err := client.Do(c.Context, d, agents.BudgetGet, api.RunParams{Run: c.Args().Get(1)})
	return p.printBudgets(c, answer.Budgets, err)
}

func (p *program) budgetList(c *cli.Context, d *client.Client) error {
	lines, err := client.Collect(client.All(c.Context, d, methods.BudgetList, api.BudgetListParams{Account: accountKey(c.Args().Get(1))}))
	return p.printBudgets(c, lines, err)
}

func (p *program) budgetSet(c *cli.Context, d *client.Client) error {
	answer, err := client.Do(c.Context, d, methods.BudgetSet, api.BudgetSetParams{Account: accountKey(c.Args().Get(1)), Limits: c.Args().Slice()[2:], AtEnd: c.String(flagAtEnd)})
	return p.printBudgets(c, answer.Budgets, err)
}

// accountKey is an account's whole name: the caller's own may be written without its
// number.
func accountKey(text string) string {
	if strings.HasPrefix(text, "name:") || strings.HasPrefix(text, "ns:") {
		return string(budget.OwnerKey(uint32(os.Geteuid()))) + "/" + text
	}
	return text
}

func (p *program) printBudgets(c *cli.Context, lines []api.Budget, err error) error {
	if err != nil {
		return err
	}
	if c.Bool(flagJSON) {
		return p.printJSON(append([]api.Budget{}, lines...))
	}
	return printTable(p.out, budgetRows(lines))
}

// budgetRows is the table of lines. An absent limit is "-".
func budgetRows(lines []api.Budget) [][]string {
	rows := [][]string{{"ACCOUNT", "DIMENSION", "USED", "RESERVED", "LIMIT", "PEAK", "WARN AT", "AT END", "PERIOD", "STATE"}}
	for _, b := range lines {
		rows = append(rows, []string{b.Account, b.Dimension, strconv.FormatInt(b.Used, 10), strconv.FormatInt(b.Reserved, 10), amount(b.Granted),
			strconv.FormatInt(b.Peak, 10), amount(b.WarnAt), b.AtEnd, b.Period, budgetState(b)})
	}
	return rows
}

func amount(n *int64) string {
	if n == nil {
		return "-"
	}
	return strconv.FormatInt(*n, 10)
}

func budgetState(b api.Budget) string {
	switch {
	case b.Spent:
		return "spent"
	case b.Warned:
		return "warned"
	}
	return ""
}

func (p *program) budgetRaise(c *cli.Context, d *client.Client) error {
	run, amounts := c.Args().Get(1), map[string]int64{}
	for _, text := range c.Args().Slice()[2:] {
		dimension, n, err := parseRaise(text)
		if err != nil {
			return err
		}
		if _, twice := amounts[string(dimension)]; twice {
			return invalid("", "name each dimension once", "%s stands there twice", dimension)
		}
		amounts[string(dimension)] = n
	}
	answer, err := client.Do(c.Context, d, methods.BudgetRaise, api.BudgetRaiseParams{RunParams: api.RunParams{Run: run}, Amounts: amounts})
	return p.changedBudget(c, run, answer.Budgets, err)
}

// parseRaise reads DIMENSION=AMOUNT.
func parseRaise(text string) (d budget.Dimension, amount int64, err error) {
	name, value, found := strings.Cut(text, "=")
	if !found {
		return "", 0, invalid("", "write DIMENSION=AMOUNT, for example tokens=20k", "%.128q names no amount", text)
	}
	if d, err = budget.ParseDimension(name); err != nil {
		return "", 0, err
	}
	if strings.ContainsAny(value, "/,") {
		return "", 0, invalid("", "write the amount alone, for example tokens=20k", "%.128q: the period and the warning of a limit stay as they are", text)
	}
	amount, err = budget.ParseAmount(d, value)
	return d, amount, err
}

// budgetReset takes an account where the text is one: a run whose name is a number is named by its
// id, or as UID/NAME.
func (p *program) budgetReset(c *cli.Context, d *client.Client) error {
	run := c.Args().Get(1)
	var dimensions []string
	for _, text := range c.Args().Slice()[2:] {
		dimension, err := budget.ParseDimension(text)
		if err != nil {
			return err
		}
		dimensions = append(dimensions, string(dimension))
	}
	key := budget.Key(accountKey(run))
	if id, ofRun := key.Run(); ofRun {
		answer, err := client.Do(c.Context, d, methods.BudgetReset, api.BudgetResetParams{RunParams: api.RunParams{Run: string(id)}, Dimensions: dimensions})
		return p.changedBudget(c, run, answer.Budgets, err)
	}
	if _, account := key.Owner(); account {
		answer, err := client.Do(c.Context, d, methods.BudgetSet, api.BudgetSetParams{Account: string(key), Reset: dimensions})
		return p.changedBudget(c, run, answer.Budgets, err)
	}
	answer, err := client.Do(c.Context, d, methods.BudgetReset, api.BudgetResetParams{RunParams: api.RunParams{Run: run}, Dimensions: dimensions})
	return p.changedBudget(c, run, answer.Budgets, err)
}

// changedBudget prints the run's name, as other commands that change a run, or all lines.
func (p *program) changedBudget(c *cli.Context, run string, lines []api.Budget, err error) error {
	if err == nil && !c.Bool(flagJSON) {
		_, err = fmt.Fprintln(p.out, printable(run))
		return err
	}
	return p.printBudgets(c, lines, err)
}
