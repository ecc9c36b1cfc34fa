package client

import (
	"context"
	"encoding/json"

	"clove.run/clove/api"
)

// Logs gives the chosen lines of a run's log to each, in order. A line with
// LostLines stands for those that are not there any more. Who goes on later asks
// behind the Number and Offset of its last line. An error of each ends
// the stream and is returned.
func (c *Client) Logs(ctx context.Context, p api.LogsParams, each func(api.LogLine) error) error {
	return c.Stream(ctx, api.MethodRunLogs, p, nil, func(_ string, text json.RawMessage) error {
		var note api.LogNote
		if err := json.Unmarshal(text, &note); err != nil {
			return err
		}
		return each(note.Line)
	})
}
