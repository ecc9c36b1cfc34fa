package client

import (
	"context"

	"clove.run/clove/api"
	"clove.run/clove/api/methods"
)

// Events gives what happened to each. A note with Gap says that some of it is
// no longer known: read the runs anew. The result's Last is where to go on, also
// with another cloved. An error of each ends the stream and is returned.
func (c *Client) Events(ctx context.Context, p api.EventParams, each func(api.EventNote) error) (r api.EventResult, err error) {
	err = c.Stream(ctx, methods.EventFollow.Name, p, &r, notes(each))
	return r, err
}
