package api

import (
	"encoding/json"
	"time"

	"clove.run/clove/agent"
)

// Mail is a message as its receiver gets it. All but Body, Priority, Expires and Trace is set by clove.
type Mail struct {
	ID      string    `json:"id" col:"ID"` // opaque
	From    agent.ID  `json:"from"`        // the run that sent it; empty: a user did
	Sender  string    `json:"sender" col:"FROM"`
	To      string    `json:"to" col:"TO"` // as the sender wrote it
	Sent    time.Time `json:"sent" col:"SENT,age"`
	Expires time.Time `json:"expires,omitzero" col:"EXPIRES,until"` // then it becomes a dead letter
	// Trace is the same in all messages that answer one another, Causation the call that sent it.
	Trace     string          `json:"trace,omitempty"`
	Causation string          `json:"causation"`
	Asks      bool            `json:"asks,omitempty"`    // its sender waits for an answer (mail.reply)
	Answers   string          `json:"answers,omitempty"` // the id of the message that it answers
	Body      json.RawMessage `json:"body"`
}

// MailSendParams sends a message.
type MailSendParams struct {
	To        string          `json:"to"` // the name or the id of a run in the sender's namespace, or parent
	Body      json.RawMessage `json:"body"`
	Priority  int             `json:"priority,omitempty"`   // 0 to 9; higher ones are received first
	ExpiresMS int64           `json:"expires_ms,omitempty"` // from now; 0: never
	Trace     string          `json:"trace,omitempty"`      // absent: a new one, or that of the message it answers
	Asks      bool            `json:"asks,omitempty"`       // mail.answer waits for what the receiver replies
	Keyed
}

// MailSendResult names the message.
type MailSendResult struct {
	ID    string `json:"id"`
	Trace string `json:"trace"`
}

// MailReceiveParams asks for messages of the caller's mailbox.
type MailReceiveParams struct {
	After string `json:"after,omitempty"` // the id of the last one that the caller has; absent: from the first that is not acknowledged
	Most  int    `json:"most,omitempty"`  // 1 to 64; absent: 1
}

// MailReceiveResult has messages, at least one. Each comes again until it is acknowledged.
type MailReceiveResult struct {
	Messages []Mail `json:"messages"`
}

// MailAckParams takes messages out of the caller's mailbox.
type MailAckParams struct {
	IDs    []string `json:"ids"`              // 1 to 64
	Reject string   `json:"reject,omitempty"` // why; they become dead letters
	Keyed
}

// MailReplyParams answers a message that asks.
type MailReplyParams struct {
	ID   string          `json:"id"` // of the message, which is in the caller's mailbox or was acknowledged by the same call
	Body json.RawMessage `json:"body"`
	Ack  bool            `json:"ack,omitempty"` // take the message out of the mailbox
	Keyed
}

// MailAnswerParams waits for the answer to a message that the caller sent.
type MailAnswerParams struct {
	ID string `json:"id"`
}

// MailAnswerResult is the answer. It is taken out of the mailbox by mail.ack.
type MailAnswerResult struct {
	Message Mail `json:"message"`
}

// MailNote says that a message has come.
type MailNote struct {
	Sender string `json:"sender"`
	Repeated
}
