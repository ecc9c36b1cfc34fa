package main

import (
	"encoding/json"
	"time"

	"github.com/urfave/cli/v2"

	"clove.run/clove/api"
	"clove.run/clove/api/methods"
)

// Flags of clove mail that no other command has.
const (
	flagMailPriority = "priority"
	flagWithin       = "within"
	flagWake         = "wake"
)

func mailCommand() command {
	return command{
		task: "share", usage: "read and send the mail of agents, and see what was not delivered",
		verbs: []verb{
			{line: "clove mail list [--owner UID] [--json]", act: list(methods.MailBoxes).columns("MAILBOX", "KIND", "OWNER", "NAMESPACE", "MESSAGES", "DEAD", "NEXT EXPIRY")},
			{line: "clove mail read [--owner UID] [--json] MAILBOX", act: list(methods.MailRead).columns("FROM", "TO", "SENT", "BLOB", "BODY")},
			{line: "clove mail blob [--owner UID] SHA256", act: blobCall()},
			{line: "clove mail send [--owner UID] [--namespace NAMESPACE] [--priority N] [--within TIME] [--wake] [--file FILE] [--json] RECEIVER [BODY]",
				act: fromFile(ask(methods.MailPost), "clove mail send RECEIVER BODY, or --file FILE in place of BODY", func(p *api.MailPostParams) body { return body{p.Owner, &p.Body, &p.Blob} }).shows(says(func(_ *line, sent api.MailSendResult) string { return sent.ID }))},
			{line: "clove mail dead [--owner UID] [--json] [MAILBOX]", act: list(methods.MailDead).columns("LETTER", "FROM", "TO", "SENT", "DIED", "WHY", "BLOB", "BODY")},
			{line: "clove mail requeue LETTER", act: ask(methods.MailRequeue).shows(says(func(l *line, _ api.Nothing) string { return l.args[0] }))},
			{line: "clove mail discard LETTER", act: ask(methods.MailDiscard).shows(says(func(l *line, _ api.Nothing) string { return l.args[0] }))},
		},
		description: "MAILBOX is a run's name or id, or a reserved name. list shows the mailboxes of your runs and names, read what is in one\n" +
			"and not acknowledged; it takes nothing out. send sends RECEIVER, a run or a registered name, a message from you; BODY is\n" +
			"JSON, or a text. FILE is one that is JSON of at most 48 KiB, or becomes a blob, which has up to 64 MiB: blob writes one\n" +
			"to the output, by the SHA-256 that read shows. dead shows messages that have expired or were rejected: requeue puts one back, discard removes it. Root\n" +
			"sees the mail of all users.",
		flags: []cli.Flag{
			&cli.StringFlag{Name: flagOwner, Usage: "the mail of this user ID; for root"},
			&cli.StringFlag{Name: flagNamespace, Usage: "send: the namespace of a registered name"},
			&cli.StringFlag{Name: flagFile, Usage: "send: the body is this file"},
			value("", flagMailPriority, "", "send: 0 to 9; higher ones are received first", "0"),
			&cli.StringFlag{Name: flagWithin, Usage: "send: how long the message may be received, such as 10m"},
			&cli.BoolFlag{Name: flagWake, Usage: "send: start a run for the name if none has it"},
			jsonFlag("list, read, dead: write a JSON array; send: an object"),
		},
	}
}

// readBody takes JSON as it is, and anything else as a text.
func readBody(text string) (json.RawMessage, error) {
	if json.Valid([]byte(text)) {
		return json.RawMessage(text), nil
	}
	return json.Marshal(text)
}

// readTime reads a time from now, in milliseconds.
func readTime(flag string) func(string) (int64, error) {
	return func(text string) (int64, error) {
		within, err := time.ParseDuration(text)
		if err != nil || within < time.Millisecond {
			return 0, invalid(flag, "write for example 10m", "%q is no time", text)
		}
		return within.Milliseconds(), nil
	}
}
