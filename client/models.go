package client

import (
	"context"

	"clove.run/clove/api"
)

// Models returns the language models that the caller may use, in the order of their names.
func (c *Client) Models(ctx context.Context) ([]api.Model, error) {
	r, err := call[api.ModelListResult](ctx, c, api.MethodModelList, api.Nothing{})
	return r.Models, err
}

// ModelPrices returns what the tokens of models cost; the first row that fits a model holds.
func (c *Client) ModelPrices(ctx context.Context) ([]api.ModelPrice, error) {
	r, err := call[api.ModelPricesResult](ctx, c, api.MethodModelPrices, api.Nothing{})
	return r.Prices, err
}
