package api

import (
	"encoding/json"
	"time"

	"clove.run/clove/agent"
)

// Mail is a message as its receiver gets it. All but Body, Priority, Expires and Trace is set by clove.
type Mail struct {
	ID      string    `json:"id"`   // opaque
	From    agent.ID  `json:"from"` // the run that sent it; empty: a user did
	Sender  string    `json:"sender" col:"FROM"`
	To      string    `json:"to" col:"TO"` // as the sender wrote it
	Sent    time.Time `json:"sent" col:"SENT,age"`
	Expires time.Time `json:"expires,omitzero"` // then it becomes a dead letter
	// Trace is the same in all messages that answer one another, Causation the call that sent it.
	Trace     string          `json:"trace,omitempty"`
	Causation string          `json:"causation"`
	Asks      bool            `json:"asks,omitempty"`                 // its sender waits for an answer (mail.reply)
	Answers   string          `json:"answers,omitempty"`              // the id of the message that it answers
	Body      json.RawMessage `json:"body" col:"BODY,json,cut"`       // null beside a blob: there is only that
	Blob      *Blob           `json:"blob,omitempty" col:"BLOB,blob"` // blob.read returns it, until the message is acknowledged
}

// MailSendParams sends a message.
type MailSendParams struct {
	To        string          `json:"to"`                   // a registered name, or the name or the id of a run, in the sender's namespace; or parent
	Body      json.RawMessage `json:"body"`                 // at most 48 KiB; null beside a blob: that alone
	Blob      string          `json:"blob,omitempty"`       // SHA-256 of one that the caller may read
	Priority  int             `json:"priority,omitempty"`   // 0 to 9; higher ones are received first
	ExpiresMS int64           `json:"expires_ms,omitempty"` // from now; 0: never
	Trace     string          `json:"trace,omitempty"`      // absent: a new one, or that of the message it answers
	Asks      bool            `json:"asks,omitempty"`       // mail.answer waits for what the receiver replies
	WaitMS    int64           `json:"wait_ms,omitempty"`    // while the mailbox is full, wait so long for place in it; 0: not at all
	Wake      bool            `json:"wake,omitempty"`       // start a run for the name if none holds it
	Keyed
}

// WaitMost is the bound of the wait in milliseconds.
func (p MailSendParams) WaitMost() int64 { return p.WaitMS }

// WaitOver is the answer when the wait has ended without place.
func (p MailSendParams) WaitOver() *Error {
	return Failure(CodeBusy, "wait until its receiver has taken some", "the mailbox of %.128q was full for %d ms", p.To, p.WaitMS).By("", RuleMailbox)
}

// MailSendResult names the message.
type MailSendResult struct {
	ID       string `json:"id"`
	Trace    string `json:"trace"`
	WaitedMS int64  `json:"waited_ms,omitempty"` // for place in the mailbox
}

// MailReceiveParams asks for messages of the caller's mailbox.
type MailReceiveParams struct {
	After string `json:"after,omitempty"` // the id of the last one that the caller has; absent: from the first that is not acknowledged
	Most  int    `json:"most,omitempty"`  // 1 to 64; absent: 1
	Within
}

// MailReceiveResult has messages, at least one. Each comes again until it is acknowledged.
type MailReceiveResult struct {
	Messages []Mail `json:"messages"`
}

// MailAckParams takes messages out of the caller's mailbox.
type MailAckParams struct {
	IDs    []string `json:"ids"`              // 1 to 64
	Reject string   `json:"reject,omitempty"` // why; they become dead letters
	// Then are done with it, each with its own rights and costs: all that is named, or nothing.
	Then []ThenCall `json:"then,omitempty"` // at most 16
	Keyed
}

// MailAckResult has what the calls in Then returned, in their order.
type MailAckResult struct {
	Results []json.RawMessage `json:"results,omitempty"`
}

// ThenCall is a call that another one carries: of a method that changes something in one transaction, without
// a key of its own.
type ThenCall struct {
	Method string          `json:"method"`
	Params json.RawMessage `json:"params,omitempty"`
}

// MailReplyParams answers a message that asks.
type MailReplyParams struct {
	ID   string          `json:"id"`   // of the message, which is in the caller's mailbox or was acknowledged by the same call
	Body json.RawMessage `json:"body"` // as in MailSendParams
	Blob string          `json:"blob,omitempty"`
	Ack  bool            `json:"ack,omitempty"` // take the message out of the mailbox
	Keyed
}

// MailAnswerParams waits for the answer to a message that the caller sent.
type MailAnswerParams struct {
	ID string `json:"id"`
	Within
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

// Mailbox is where messages wait for a run, or for a reserved name.
type Mailbox struct {
	ID        string    `json:"id"` // opaque
	Owner     uint32    `json:"owner" col:"OWNER"`
	Namespace string    `json:"namespace,omitempty" col:"NAMESPACE"`
	Kind      string    `json:"kind" col:"KIND"` // run or name
	Name      string    `json:"name" col:"MAILBOX"`
	Run       agent.ID  `json:"run,omitempty"` // of the kind run
	Messages  int       `json:"messages" col:"MESSAGES"`
	Dead      int       `json:"dead" col:"DEAD"`                          // letters
	Expires   time.Time `json:"expires,omitzero" col:"NEXT EXPIRY,until"` // when the first message does
}

// MailBoxesParams chooses mailboxes. Empty fields choose all that the caller may see.
type MailBoxesParams struct {
	Owner *uint32 `json:"owner,omitempty"`
	After string  `json:"after,omitempty"` // where the last answer ended
}

// MailBoxesResult is a part of the mailboxes. Within one, they are in the order of their owners and names.
type MailBoxesResult struct {
	Mailboxes []Mailbox `json:"mailboxes"`
	Next      string    `json:"next,omitempty"` // what to ask with in After; empty: these were the last
}

// MailReadParams names a mailbox whose messages are read.
type MailReadParams struct {
	Owner   *uint32 `json:"owner,omitempty"`
	Mailbox string  `json:"mailbox"`         // a run's name or id, a reserved name, or the id of a mailbox
	After   string  `json:"after,omitempty"` // where the last answer ended
}

// MailReadResult is a part of the messages of a mailbox, in the order in which they are received.
type MailReadResult struct {
	Messages []Mail `json:"messages"`
	Next     string `json:"next,omitempty"` // what to ask with in After; empty: these were the last
}

// MailPostParams sends a message of a user's.
type MailPostParams struct {
	Owner     *uint32         `json:"owner,omitempty"`      // of the receiver; absent: the caller; only root names another
	Namespace string          `json:"namespace,omitempty"`  // of a registered name
	To        string          `json:"to"`                   // a registered name, or a run's name or id
	Body      json.RawMessage `json:"body"`                 // at most 48 KiB; null beside a blob: that alone
	Blob      string          `json:"blob,omitempty"`       // SHA-256 of one that the caller may read
	Priority  int             `json:"priority,omitempty"`   // 0 to 9; higher ones are received first
	ExpiresMS int64           `json:"expires_ms,omitempty"` // from now; 0: never
	Wake      bool            `json:"wake,omitempty"`       // start a run for the name if none holds it
	Keyed
}

// DeadLetter is a message that has expired, or that its receiver has rejected.
type DeadLetter struct {
	Letter string `json:"letter" col:"LETTER"` // the id of the message, for mail.requeue and mail.discard
	Mail
	Mailbox string    `json:"mailbox"` // its id
	Why     string    `json:"why" col:"WHY,,cut"`
	Died    time.Time `json:"died" col:"DIED,age"`
}

// MailDeadParams chooses dead letters. Empty fields choose all that the caller may see.
type MailDeadParams struct {
	Owner   *uint32 `json:"owner,omitempty"`
	Mailbox string  `json:"mailbox,omitempty"` // as in MailReadParams
	After   string  `json:"after,omitempty"`   // where the last answer ended
}

// MailDeadResult is a part of the dead letters.
type MailDeadResult struct {
	Letters []DeadLetter `json:"letters"`
	Next    string       `json:"next,omitempty"` // what to ask with in After; empty: these were the last
}

// MailLetterParams names a dead letter.
type MailLetterParams struct {
	ID string `json:"id"`
	Keyed
}

// MailTopicParams names a topic of the caller's namespace.
type MailTopicParams struct {
	Topic string `json:"topic"`
	Keyed
}

// MailPublishParams sends a message to each run that has subscribed to a topic.
type MailPublishParams struct {
	Topic      string          `json:"topic"`
	Body       json.RawMessage `json:"body"` // as in MailSendParams
	Blob       string          `json:"blob,omitempty"`
	Priority   int             `json:"priority,omitempty"`     // as in MailSendParams
	ExpiresMS  int64           `json:"expires_ms,omitempty"`   // from now; 0: never
	Trace      string          `json:"trace,omitempty"`        // absent: a new one
	FailOnFull bool            `json:"fail_on_full,omitempty"` // refuse all if the mailbox of one is full
	Keyed
}

// MailPublishResult says how many subscribers there are: each has a copy, or its mailbox is full.
type MailPublishResult struct {
	Delivered int    `json:"delivered"`
	Full      int    `json:"full"` // they get no copy
	Trace     string `json:"trace"`
}
