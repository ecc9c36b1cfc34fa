package client

import (
	"context"
	"encoding/json"

	"clove.run/clove/api"
	"clove.run/clove/api/methods"
)

// Logs gives the chosen lines of a run's log to each, in order, as many at once as
// have come. A line with
// LostLines stands for those that are not there any more. To continue later, ask
// behind the Number and Offset of its last line. An error of each ends
// the stream and is returned.
func (c *Client) Logs(ctx context.Context, p api.LogsParams, each func([]api.LogLine) error) error {
	p.Many = true
	return c.Stream(ctx, methods.RunLogs.Name, p, nil, func(_ string, text json.RawMessage) error {
		note, err := api.ParseLogNote(text)
		if err != nil {
			return err
		}
		if len(note.Lines) == 0 {
			note.Lines = []api.LogLine{note.Line} // of a cloved that sends one at a time
		}
		return each(note.Lines)
	})
}
