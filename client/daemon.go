package client

import (
	"context"

	"clove.run/clove/api"
)

// Drain has cloved start nothing any more, or again. Live runs go on.
func (c *Client) Drain(ctx context.Context, on bool) error {
	return c.Call(ctx, api.MethodDrain, api.DrainParams{On: on}, nil)
}
