package client

import (
	"context"

	"clove.run/clove/api"
)

// Budgets returns every line that a run spends from, those of its own account first.
func (c *Client) Budgets(ctx context.Context, ref string) ([]api.Budget, error) {
	return c.budgets(ctx, api.MethodBudgetGet, api.RunParams{Run: ref})
}

// RaiseBudget adds amounts, by dimension, to what is granted to a run, and returns what
// Budgets does.
func (c *Client) RaiseBudget(ctx context.Context, ref string, amounts map[string]int64) ([]api.Budget, error) {
	return c.budgets(ctx, api.MethodBudgetRaise, api.BudgetRaiseParams{RunParams: api.RunParams{Run: ref}, Amounts: amounts})
}

// ResetBudget sets what a run has used of dimensions back to zero, and returns what
// Budgets does.
func (c *Client) ResetBudget(ctx context.Context, ref string, dimensions []string) ([]api.Budget, error) {
	return c.budgets(ctx, api.MethodBudgetReset, api.BudgetResetParams{RunParams: api.RunParams{Run: ref}, Dimensions: dimensions})
}

func (c *Client) budgets(ctx context.Context, method string, params any) ([]api.Budget, error) {
	r, err := call[api.BudgetResult](ctx, c, method, params)
	return r.Budgets, err
}
