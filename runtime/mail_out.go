package runtime

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/agents"
)

// mailOut sends each line of standard output as a message. Write returns when its lines are sent: while a
// mailbox is full the agent's pipe is not read, and the agent waits in its next write.
type mailOut struct {
	streams *mailStreams
	to      agent.MailStream
	key     string          // of this start: a line that is sent again after a loss of cloved is one message
	ctx     context.Context // its end ends each wait
	cancel  context.CancelFunc

	lines int64 // so far, which makes the key of each
	line  []byte
	over  bool // nothing can be sent any more
	said  bool // that a line was refused
}

// Write fails with EPIPE when nobody can receive the lines: the agent gets that error then, or SIGPIPE, as from
// a shell's pipe without a reader.
func (o *mailOut) Write(data []byte) (int, error) {
	for rest := data; ; {
		part, after, whole := bytes.Cut(rest, []byte{'\n'})
		// One byte more than fits is kept, which says that the line is too long.
		o.line = append(o.line, part[:min(len(part), api.BodyMost+1-len(o.line))]...)
		if !whole {
			return len(data), nil
		}
		if err := o.send(); err != nil {
			return 0, err
		}
		rest = after
	}
}

// finish sends a last line without an end.
func (o *mailOut) finish() {
	if len(o.line) > 0 {
		_ = o.send() // it is counted
	}
	o.cancel()
}

// send sends the line.
func (o *mailOut) send() error {
	line := o.line
	o.line = o.line[:0]
	o.lines++
	if o.over {
		o.streams.count(func(u *agent.StreamUse) { u.Unsent++ })
		return nil
	}
	body, err := o.body(line)
	if err != nil {
		o.refuse(err)
		return nil
	}
	params := api.MailSendParams{To: o.to.Name, Body: body, Keyed: api.Keyed{Key: o.key + "-" + strconv.FormatInt(o.lines, 10)}}
	_, err = o.streams.until(o.ctx, agents.MailSend.Name, params, o.waits)
	o.read()
	if err == nil {
		o.streams.count(func(u *agent.StreamUse) { u.Sent++ })
		return nil
	}
	o.over = true
	o.streams.count(func(u *agent.StreamUse) { u.Unsent++ })
	o.streams.say("--stdout-to", fmt.Errorf("line %d and those after it are not sent: %w", o.lines, err))
	if o.ctx.Err() != nil {
		return nil // the agent has ended, and its output is read to the end
	}
	return unix.EPIPE
}

// body is the line as a message.
func (o *mailOut) body(line []byte) (body json.RawMessage, err error) {
	if len(line) > api.BodyMost {
		return nil, fmt.Errorf("it has more than %d bytes", api.BodyMost)
	}
	// With the escapes that the call will have: those count.
	var value any = string(line)
	if o.to.JSON {
		if value = json.RawMessage(line); !utf8.Valid(line) {
			return nil, errors.New("it is not UTF-8")
		}
	}
	if body, err = json.Marshal(value); err != nil {
		return nil, err
	}
	return api.Compacted("a line", body)
}

// refuse counts a line that no message can carry. The first one is reported; the log has them all.
func (o *mailOut) refuse(why error) {
	o.streams.count(func(u *agent.StreamUse) { u.Refused++ })
	if !o.said {
		o.said = true
		o.streams.say("--stdout-to", fmt.Errorf("line %d is not sent: %w", o.lines, why))
	}
}

// waits notes that the pipe is not read from now on, and read that it is again.
func (o *mailOut) waits() {
	o.streams.mu.Lock()
	defer o.streams.mu.Unlock()
	if o.streams.waiting.IsZero() {
		o.streams.waiting = time.Now()
	}
}

func (o *mailOut) read() {
	o.streams.mu.Lock()
	defer o.streams.mu.Unlock()
	if !o.streams.waiting.IsZero() {
		o.streams.use.WaitedMS += time.Since(o.streams.waiting).Milliseconds()
		o.streams.waiting = time.Time{}
	}
}
