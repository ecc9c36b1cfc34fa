package client

import (
	"context"

	"clove.run/clove/api"
	"clove.run/clove/api/methods"
)

// Audit gives records of the audit log to each, the oldest first. An error of each ends the
// stream and is returned.
func (c *Client) Audit(ctx context.Context, p api.AuditQueryParams, each func(api.AuditRecordNote) error) (r api.AuditQueryResult, err error) {
	err = c.Stream(ctx, methods.AuditQuery.Name, p, &r, notes(each))
	return r, err
}
