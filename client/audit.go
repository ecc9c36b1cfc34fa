package client

import (
	"context"

	"clove.run/clove/api"
)

// Audit gives records of the audit log to each, the oldest first. An error of each ends the
// stream and is returned.
func (c *Client) Audit(ctx context.Context, p api.AuditQueryParams, each func(api.AuditRecordNote) error) (r api.AuditQueryResult, err error) {
	err = c.Stream(ctx, api.MethodAuditQuery, p, &r, notes(each))
	return r, err
}
