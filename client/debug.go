package client

import (
	"context"

	"clove.run/clove/api"
)

// Debug returns one part of what cloved is doing inside; for root.
func (c *Client) Debug(ctx context.Context, part api.DebugPart) (string, error) {
	var r api.DebugResult
	err := c.Call(ctx, api.MethodDebug, api.DebugParams{Part: part}, &r)
	return r.Text, err
}
