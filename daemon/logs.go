package daemon

import (
	"encoding/json"
	"os"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/methods"
	"clove.run/clove/daemon/logs"
	"clove.run/clove/internal/watch"
	"clove.run/clove/runtime"
	"clove.run/clove/scheduler"
)

// maxTail is more than any log holds, and small enough for a reader to double it.
const maxTail = 1 << 30

// logReader serves the method that reads the log of a run.
type logReader struct {
	cache   *cache
	paths   runtime.Paths
	watches *watch.Source
}

func (l logReader) methods() []handler {
	return []handler{on(methods.RunLogs, l.read)}
}

// read gives lines of a run's log.
func (l logReader) read(c *request, p api.LogsParams) (api.Nothing, error) {
	id := c.run.Spec.ID
	dir, err := l.dir(c.run, p)
	if err != nil {
		return api.Nothing{}, err
	}
	// All followers share one inotify instance: the kernel gives a user, and so root, 128
	// of them (package watch).
	choice := logs.Choice{Since: p.Since, After: p.After, Offset: p.AfterOffset, Tail: -1, Watch: l.watches.Dir}
	if p.Tail != nil {
		choice.Tail = min(max(0, *p.Tail), maxTail)
	}
	if p.Follow {
		// The supervisor has written the whole log before it stores the end, so a reader
		// that sees the end finds every line.
		ended := make(chan struct{})
		choice.Ended = ended
		go func() {
			defer close(ended)
			// An error is the end of the request, or a store that fails.
			_, _, _ = l.cache.until(c, id, func(run agent.Run, found bool) bool {
				return !found || run.State == agent.StateEnded && !scheduler.StartsAgain(run)
			})
		}()
	}
	give := func(line api.LogLine) error { return c.note(api.NoteLogLine, api.LogNote{ID: c.id, Line: line}) }
	if p.Many {
		together := &manyLines{c: c}
		give, choice.Pause = together.add, together.send
	}
	return api.Nothing{}, logs.Read(c, dir, choice, give)
}

// dir is where the log lies that is asked for.
func (l logReader) dir(run agent.Run, p api.LogsParams) (string, error) {
	if !p.Models {
		if !run.Spec.Detached {
			return "", api.Failure(api.CodeConflict, "its output went to the terminal that started it; run -d keeps a log", "%s was started in the foreground and has no log", run.Spec.Name)
		}
		return l.paths.Log(run.Spec.ID), nil
	}
	dir := l.paths.ModelLog(run.Spec.ID)
	if !run.Spec.Kernel.ModelLog {
		return "", api.Failure(api.CodeConflict, "start it with --model-log", "%s keeps nothing of what its calls of models say", run.Spec.Name)
	}
	// A reader that waits would make the directory above, which is the run's.
	if _, err := os.Lstat(dir); p.Follow && err != nil {
		return "", api.Failure(api.CodeConflict, "follow it when it runs", "%s has not begun to call models", run.Spec.Name)
	}
	return dir, nil
}

// manyBytes is how much text of lines is gathered for one notification.
const manyBytes = 64 << 10

// manyLines gathers lines for one notification. It appends the lines' JSON to its own,
// because a log has hundreds of thousands of lines (api.LogLine.AppendJSON).
type manyLines struct {
	c    *request
	text []byte // of the notification so far; empty: there is no line
}

// add appends a line, and sends what was gathered when it is long enough. The rest goes
// when the reader pauses (logs.Choice).
func (m *manyLines) add(line api.LogLine) error {
	if len(m.text) == 0 {
		id, err := json.Marshal(m.c.id)
		if err != nil {
			return err
		}
		m.text = append(append(append(m.text, `{"id":`...), id...), `,"lines":[`...)
	} else {
		m.text = append(m.text, ',')
	}
	var err error
	if m.text, err = line.AppendJSON(m.text); err != nil || len(m.text) < manyBytes {
		return err
	}
	return m.send()
}

// send gives what was gathered.
func (m *manyLines) send() error {
	if len(m.text) == 0 {
		return nil
	}
	err := m.c.note(api.NoteLogLine, json.RawMessage(append(m.text, "]}"...)))
	// note has written the text when it returns, so the buffer is free for the next lines.
	m.text = m.text[:0]
	return err
}
