package client

import (
	"context"

	"clove.run/clove/api"
	"clove.run/clove/api/methods"
)

// Models returns the language models that the caller may use, in the order of their names.
func (c *Client) Models(ctx context.Context) ([]api.Model, error) {
	r, err := call[api.ModelListResult](ctx, c, methods.ModelList.Name, api.Nothing{})
	return r.Models, err
}

// ModelPrices returns what the tokens of models cost; the first row that fits a model holds.
func (c *Client) ModelPrices(ctx context.Context) ([]api.ModelPrice, error) {
	r, err := call[api.ModelPricesResult](ctx, c, methods.ModelPrices.Name, api.Nothing{})
	return r.Prices, err
}

// TestModel makes one small call of a model. One that failed is no error: the result has a
// Failure.
func (c *Client) TestModel(ctx context.Context, name string) (api.ModelTestResult, error) {
	return call[api.ModelTestResult](ctx, c, methods.ModelTest.Name, api.ModelTestParams{Model: name})
}

// TopModels returns which runs use models now, those with most calls first.
func (c *Client) TopModels(ctx context.Context) ([]api.ModelRun, error) {
	r, err := call[api.ModelTopResult](ctx, c, methods.ModelTop.Name, api.Nothing{})
	return r.Runs, err
}
