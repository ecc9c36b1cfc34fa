package client

import (
	"context"
	"syscall"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/methods"
)

// Stop ends a run and answers when it has ended; without a grace the run's own
// holds.
func (c *Client) Stop(ctx context.Context, ref string, grace *time.Duration) error {
	return c.Call(ctx, methods.RunStop.Name, api.StopParams{RunParams: api.RunParams{Run: ref}, GraceNS: nanoseconds(grace)}, nil)
}

// Signal sends the agent a signal, 1 to 64, and does not wait for its effect. KILL
// and TERM suspend the restart policy.
func (c *Client) Signal(ctx context.Context, ref string, number syscall.Signal) error {
	return c.Call(ctx, methods.RunSignal.Name, api.SignalParams{RunParams: api.RunParams{Run: ref}, Signal: int(number)}, nil)
}

// EndByPolicy kills a run with the status policy-kill and does not wait for its end. Without a
// reason the record names the caller.
func (c *Client) EndByPolicy(ctx context.Context, ref, reason string) error {
	return c.Call(ctx, methods.RunSignal.Name, api.SignalParams{RunParams: api.RunParams{Run: ref}, Policy: true, Reason: reason}, nil)
}

// RestartFresh is Restart with a new layer: what the agent wrote is lost.
func (c *Client) RestartFresh(ctx context.Context, ref string, grace *time.Duration) (api.RunResult, error) {
	stop := api.StopParams{RunParams: api.RunParams{Run: ref}, GraceNS: nanoseconds(grace)}
	return call[api.RunResult](ctx, c, methods.RunRestart.Name, api.RestartParams{StopParams: stop, Fresh: true})
}

// Restart ends a run if it lives, and starts it again.
func (c *Client) Restart(ctx context.Context, ref string, grace *time.Duration) (api.RunResult, error) {
	return call[api.RunResult](ctx, c, methods.RunRestart.Name, api.StopParams{RunParams: api.RunParams{Run: ref}, GraceNS: nanoseconds(grace)})
}

// Pause freezes a run; its wall clock goes on. It is a conflict when it is
// frozen already.
func (c *Client) Pause(ctx context.Context, ref string) error {
	return c.Call(ctx, methods.RunPause.Name, api.RunParams{Run: ref}, nil)
}

// Resume lets a paused run go on.
func (c *Client) Resume(ctx context.Context, ref string) error {
	return c.Call(ctx, methods.RunResume.Name, api.RunParams{Run: ref}, nil)
}

// Update changes a live run's limits and rules: all that u names, or nothing.
func (c *Client) Update(ctx context.Context, ref string, u agent.Update) (api.RunResult, error) {
	return call[api.RunResult](ctx, c, methods.RunUpdate.Name, api.UpdateParams{RunParams: api.RunParams{Run: ref}, Update: u})
}
