package client

import (
	"context"

	"clove.run/clove/api"
	"clove.run/clove/api/agents"
	"clove.run/clove/api/methods"
)

// Budgets returns every line that a run spends from, those of its own account first.
func (c *Client) Budgets(ctx context.Context, ref string) ([]api.Budget, error) {
	return c.budgets(ctx, agents.BudgetGet.Name, api.RunParams{Run: ref})
}

// RaiseBudget adds amounts, by dimension, to what is granted to a run, and returns what
// Budgets does.
func (c *Client) RaiseBudget(ctx context.Context, ref string, amounts map[string]int64) ([]api.Budget, error) {
	return c.budgets(ctx, methods.BudgetRaise.Name, api.BudgetRaiseParams{RunParams: api.RunParams{Run: ref}, Amounts: amounts})
}

// ResetBudget sets what a run has used of dimensions back to zero, and returns what
// Budgets does.
func (c *Client) ResetBudget(ctx context.Context, ref string, dimensions []string) ([]api.Budget, error) {
	return c.budgets(ctx, methods.BudgetReset.Name, api.BudgetResetParams{RunParams: api.RunParams{Run: ref}, Dimensions: dimensions})
}

// SetBudget sets limits of an account that is not a run's, and returns its lines.
func (c *Client) SetBudget(ctx context.Context, p api.BudgetSetParams) ([]api.Budget, error) {
	return c.budgets(ctx, methods.BudgetSet.Name, p)
}

func (c *Client) budgets(ctx context.Context, method string, params any) ([]api.Budget, error) {
	r, err := call[api.BudgetResult](ctx, c, method, params)
	return r.Budgets, err
}

// ListBudgets returns the lines of an account and of all below it. The empty account means
// the caller's own, for root all. A cloved that names a next part again and again ends it
// with ctx.
func (c *Client) ListBudgets(ctx context.Context, account string) ([]api.Budget, error) {
	p := api.BudgetListParams{Account: account}
	var all []api.Budget
	for {
		part, err := call[api.BudgetListResult](ctx, c, methods.BudgetList.Name, p)
		if err != nil {
			return nil, err
		}
		all = append(all, part.Budgets...)
		if part.Next == "" {
			return all, nil
		}
		p.After = part.Next
	}
}

// ReportBudgets returns what users' runs spent on the days from and to, both included, and
// all days where they are empty. A cloved that names a next part again and again ends it
// with ctx.
func (c *Client) ReportBudgets(ctx context.Context, from, to string) ([]api.DaySum, error) {
	p := api.BudgetReportParams{From: from, To: to}
	var all []api.DaySum
	for {
		part, err := call[api.BudgetReportResult](ctx, c, methods.BudgetReport.Name, p)
		if err != nil {
			return nil, err
		}
		all = append(all, part.Days...)
		if part.Next == "" {
			return all, nil
		}
		p.After = part.Next
	}
}

// TopBudgets returns which runs spent most of a dimension in the last minute, empty: of
// each.
func (c *Client) TopBudgets(ctx context.Context, dimension string) ([]api.Spender, error) {
	r, err := call[api.BudgetTopResult](ctx, c, methods.BudgetTop.Name, api.BudgetTopParams{Dimension: dimension})
	return r.Spenders, err
}
