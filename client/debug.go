package client

import (
	"context"

	"clove.run/clove/api"
	"clove.run/clove/api/methods"
)

// Debug returns one part of what cloved is doing inside; for root.
func (c *Client) Debug(ctx context.Context, part api.DebugPart) (string, error) {
	r, err := call[api.DebugResult](ctx, c, methods.Debug.Name, api.DebugParams{Part: part})
	return r.Text, err
}
