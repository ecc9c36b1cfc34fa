package client

import (
	"context"

	"clove.run/clove/api"
	"clove.run/clove/api/methods"
)

// BackupKernel has cloved copy kernel.db to a file that does not exist yet; for root.
func (c *Client) BackupKernel(ctx context.Context, to string) error {
	return c.Call(ctx, methods.Backup.Name, api.BackupParams{File: to}, nil)
}

// CheckKernel has cloved check kernel.db, and returns what is wrong with it; for root.
func (c *Client) CheckKernel(ctx context.Context) ([]string, error) {
	r, err := call[api.CheckResult](ctx, c, methods.Check.Name, api.Nothing{})
	return r.Problems, err
}
