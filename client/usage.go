package client

import (
	"context"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/methods"
)

// Stats returns what a live run uses. A figure that the host cannot supply is nil.
func (c *Client) Stats(ctx context.Context, ref string) (agent.Stats, error) {
	r, err := call[api.StatsResult](ctx, c, methods.RunStats.Name, api.RunParams{Run: ref})
	return r.Stats, err
}

// Processes lists the processes of a live run with the ids that they have
// inside. Their command lines come from the agent: do not trust them.
func (c *Client) Processes(ctx context.Context, ref string) ([]agent.Process, error) {
	r, err := call[api.ProcessesResult](ctx, c, methods.RunProcesses.Name, api.RunParams{Run: ref})
	return r.Processes, err
}
