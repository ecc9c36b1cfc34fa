package daemon

import (
	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/daemon/logs"
)

// maxTail is more than any log holds.
const maxTail = 1 << 30

// readLogs gives lines of a run's log.
func readLogs(c *call, p api.LogsParams) (any, error) {
	id := c.run.Spec.ID
	if !c.run.Spec.Detached {
		return nil, api.Failure(api.CodeConflict, "its output went to the terminal that started it; run -d keeps a log", "%s was started in the foreground and has no log", c.run.Spec.Name)
	}
	choice := logs.Choice{Since: p.Since, After: p.After, Offset: p.AfterOffset, Tail: -1, Watch: c.watches.Dir}
	if p.Tail != nil {
		choice.Tail = min(max(0, *p.Tail), maxTail)
	}
	if p.Follow {
		ended := make(chan struct{})
		choice.Ended = ended
		go func() {
			defer close(ended)
			// An error is the end of the request, or a store that fails.
			_, _, _ = c.mirror.until(c, id, func(run agent.Run, found bool) bool {
				return !found || run.State == agent.StateEnded && !judge(run).again
			})
		}()
	}
	err := logs.Read(c, c.logDir(id), choice, func(line api.LogLine) error {
		return c.note(api.NoteLogLine, api.LogNote{ID: c.id, Line: line})
	})
	return api.Nothing{}, err
}
