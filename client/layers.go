package client

import (
	"context"
	"encoding/json"

	"clove.run/clove/agent"
	"clove.run/clove/api"
)

// Diff gives each change of a run's files; the result's digest is for Apply.
func (c *Client) Diff(ctx context.Context, ref string, each func(agent.Change) error) (r api.DiffResult, err error) {
	err = c.Stream(ctx, api.MethodRunDiff, api.RunParams{Run: ref}, &r, eachChange(each))
	return r, err
}

// Apply writes a run's workspace back to the host with the caller's own rights
// and gives each change that was made or refused.
func (c *Client) Apply(ctx context.Context, params api.ApplyParams, each func(agent.Change) error) (r api.ApplyResult, err error) {
	err = c.Stream(ctx, api.MethodRunApply, params, &r, eachChange(each))
	return r, err
}

// eachChange takes the change out of its notification.
func eachChange(each func(agent.Change) error) func(string, json.RawMessage) error {
	return notes(func(note api.ChangeNote) error { return each(note.Change) })
}
