package runtime

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/agents"
)

// mailIn writes the messages of the run's mailbox to standard input, a line each. One is acknowledged when its
// whole line is in the agent's pipe; one that is not comes again at the next start.
type mailIn struct {
	streams *mailStreams
	from    agent.MailStream
	ctx     context.Context
	begun   chan struct{} // closed when the agent executes
	first   bool          // input of another kind comes before
}

// feed returns when the run ends, or when the agent has closed its input.
func (i *mailIn) feed(to io.Writer) {
	select {
	case <-i.begun:
	case <-i.ctx.Done():
		return
	}
	for i.ctx.Err() == nil {
		if err := i.one(to); err != nil {
			if i.ctx.Err() == nil && !errors.Is(err, errNotRead) {
				i.streams.end("--stdin-from", fmt.Errorf("no more is read from the mailbox: %w", err))
			}
			return
		}
	}
}

// errNotRead ends the input of an agent that reads no more, or has ended: that is no fault.
var errNotRead = errors.New("the agent has closed its input")

// one waits for a message, writes it and acknowledges it.
func (i *mailIn) one(to io.Writer) error {
	text, err := i.streams.until(i.ctx, agents.MailReceive.Name, api.MailReceiveParams{}, func() {})
	var got api.MailReceiveResult
	if err == nil {
		err = json.Unmarshal(text, &got)
	}
	if err != nil {
		return err
	}
	for _, m := range got.Messages {
		ack := api.MailAckParams{IDs: []string{m.ID}}
		line, why := i.line(m)
		if ack.Reject = why; why == "" {
			if _, err := to.Write(line); err != nil {
				return errNotRead
			}
		}
		_, err := i.streams.until(i.ctx, agents.MailAck.Name, ack, func() {})
		// The answer to an acknowledgement was lost with cloved, and the message is gone.
		if err != nil && api.ErrorOf(err).Code != api.CodeNotFound {
			return err
		}
		i.streams.count(func(u *agent.StreamUse) {
			if why == "" {
				u.Received++
			} else {
				u.Rejected++
			}
		})
	}
	return nil
}

// line is a message for the agent to read, or why no line can carry it.
func (i *mailIn) line(m api.Mail) (line []byte, why string) {
	if m.Blob != nil {
		return nil, "standard input carries no blob"
	}
	var text string
	if i.from.JSON || json.Unmarshal(m.Body, &text) != nil || string(m.Body) == "null" {
		return append(bytes.Clone(m.Body), '\n'), ""
	}
	line = append([]byte(text), '\n')
	if bytes.IndexByte(line, '\n') != len(line)-1 {
		return nil, "standard input carries one line of text, or JSON with mail:NAME,json"
	}
	return line, ""
}
