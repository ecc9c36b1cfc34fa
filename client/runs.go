package client

import (
	"context"
	"maps"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/methods"
)

// Info says what this cloved is.
func (c *Client) Info(ctx context.Context) (api.InfoResult, error) {
	return call[api.InfoResult](ctx, c, methods.Info.Name, api.Nothing{})
}

// Guard makes network rules hold in an engine's container, and answers when they do.
func (c *Client) Guard(ctx context.Context, g agent.Guard) error {
	return c.Call(ctx, methods.Guard.Name, api.GuardParams{Guard: g}, nil)
}

// Account has cloved keep the record of a container that an engine ran.
func (c *Client) Account(ctx context.Context, p api.ContainerParams) error {
	return c.Call(ctx, methods.Container.Name, p, nil)
}

// Drain holds back every start, or lets them go on.
func (c *Client) Drain(ctx context.Context, on bool) error {
	return c.Call(ctx, methods.Drain.Name, api.DrainParams{On: on}, nil)
}

// Start asks for a run; see methods.RunStart.Name for when it answers.
func (c *Client) Start(ctx context.Context, p api.StartParams) (api.RunResult, error) {
	return call[api.RunResult](ctx, c, methods.RunStart.Name, p)
}

// List returns the caller's runs, newest first; of root all. It asks until it has them,
// or as many as Limit; then Next is where the rest begins.
func (c *Client) List(ctx context.Context, p api.ListParams) (api.ListResult, error) {
	all := api.ListResult{Runs: []agent.Run{}, Reasons: map[agent.ID]string{}}
	for most := p.Limit; ; {
		// An answer has as many runs as fit into it, so what is still missing is asked for
		// again.
		if most > 0 {
			p.Limit = most - len(all.Runs)
		}
		part, err := call[api.ListResult](ctx, c, methods.RunList.Name, p)
		if err != nil {
			return api.ListResult{}, err
		}
		all.Runs = append(all.Runs, part.Runs...)
		maps.Copy(all.Reasons, part.Reasons)
		all.Next, p.After = part.Next, part.Next
		if part.Next == "" || most > 0 && len(all.Runs) >= most {
			return all, nil
		}
	}
}

// Get returns the run with this id, name, or unique beginning of an id, in that
// order. What the caller does not own is not found.
func (c *Client) Get(ctx context.Context, ref string) (api.RunResult, error) {
	return call[api.RunResult](ctx, c, methods.RunGet.Name, api.RunParams{Run: ref})
}

// Wait answers when the run has ended for good, and no policy starts it again.
// It lasts as long as the run: ctx ends it earlier, and so does the end of
// cloved, with an error of KindBusy; then ask the next cloved.
func (c *Client) Wait(ctx context.Context, ref string) (api.WaitResult, error) {
	return call[api.WaitResult](ctx, c, methods.RunWait.Name, api.RunParams{Run: ref})
}

// Remove forgets a run, its record, layer and log; with force it may be alive,
// and is killed. Without, that is a conflict.
func (c *Client) Remove(ctx context.Context, ref string, force bool) error {
	return c.Call(ctx, methods.RunRemove.Name, api.RemoveParams{RunParams: api.RunParams{Run: ref}, Force: force}, nil)
}

// Rename gives a run that does not execute another name.
func (c *Client) Rename(ctx context.Context, ref, name string) (api.RunResult, error) {
	return call[api.RunResult](ctx, c, methods.RunRename.Name, api.RenameParams{RunParams: api.RunParams{Run: ref}, Name: name})
}

// Prune removes the caller's ended runs.
func (c *Client) Prune(ctx context.Context) (api.PruneResult, error) {
	return call[api.PruneResult](ctx, c, methods.RunPrune.Name, api.Nothing{})
}
