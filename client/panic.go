package client

import (
	"context"

	"clove.run/clove/api"
	"clove.run/clove/api/methods"
)

// Panic ends all agents for a reason and returns their names, or lets runs start again.
func (c *Client) Panic(ctx context.Context, reason string, clear bool) (ended []string, err error) {
	r, err := call[api.PanicResult](ctx, c, methods.Panic.Name, api.PanicParams{Reason: reason, Clear: clear})
	return r.Ended, err
}
