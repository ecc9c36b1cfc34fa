package runtime

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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

// Write fails with EPIPE when nothing can receive the lines: the agent gets that error then, or SIGPIPE, as from
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
			o.streams.count(func(u *agent.StreamUse) { u.Unsent += int64(bytes.Count(after, []byte{'\n'})) })
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
	params := api.MailSendParams{To: o.to.Name, Body: body, WaitMS: mailFull.Milliseconds(), Keyed: api.Keyed{Key: o.key + "-" + strconv.FormatInt(o.lines, 10)}}
	text, err := o.streams.until(o.ctx, agents.MailSend.Name, params, o.attempt)
	var result api.MailSendResult
	if err == nil {
		err = json.Unmarshal(text, &result)
	}
	if err == nil {
		o.streams.count(func(u *agent.StreamUse) {
			u.Sent, u.WaitedMS, o.streams.waiting = u.Sent+1, u.WaitedMS+result.WaitedMS, time.Time{}
			if o.streams.patience != nil {
				o.streams.patience.Reset(mailPatience)
			}
		})
		return nil
	}
	o.attempt() // the last one was in vain, too
	o.over = true
	o.streams.count(func(u *agent.StreamUse) { u.Unsent, o.streams.waiting = u.Unsent+1, time.Time{} })
	if o.ctx.Err() != nil {
		err = errors.New("the run has ended, and its mailbox was full, a budget spent or cloved away until then")
	}
	o.streams.end("--stdout-to", fmt.Errorf("line %d and those after it are not sent: %w", o.lines, err))
	if o.ctx.Err() != nil {
		return nil // the agent has ended, and its output is read to the end
	}
	return unix.EPIPE
}

// body is the line as a message.
func (o *mailOut) body(line []byte) (body json.RawMessage, err error) {
	if len(line) > api.BodyMost {
		return nil, fmt.Errorf("it has more than %d bytes; larger ones are blobs, which the program sends itself (docs/mail.md)", api.BodyMost)
	}
	// With the escapes that the call will have: those count.
	if !utf8.Valid(line) {
		return nil, errors.New("it is not UTF-8")
	}
	var value any = string(line)
	if o.to.JSON {
		value = json.RawMessage(line)
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

// attempt notes that a line is sent from now on; what was tried before was a wait.
func (o *mailOut) attempt() {
	o.streams.mu.Lock()
	defer o.streams.mu.Unlock()
	now := time.Now()
	if !o.streams.waiting.IsZero() {
		o.streams.use.WaitedMS += now.Sub(o.streams.waiting).Milliseconds()
	}
	o.streams.waiting = now
}

// tee writes all to the reader of standard output and to mail. An error of the first, such as a full disk, keeps
// nothing from the second, and a pipe that one of them has closed is closed for the agent.
type tee struct{ reader, mail io.Writer }

func (t tee) Write(data []byte) (int, error) {
	_, err := t.reader.Write(data)
	if errors.Is(err, unix.EPIPE) {
		return 0, err
	}
	return t.mail.Write(data)
}
