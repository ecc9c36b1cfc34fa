package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/methods"
	"clove.run/clove/client"
	"clove.run/clove/cmd/clove/verbs"
	"clove.run/clove/kernel/budget"
)

// Flags of clove approvals that no other command has.
const flagFor = "for"

func approvalsCommand() command {
	return command{
		task: "change", usage: "see what agents ask people, and answer",
		verbs: []verb{
			{line: "clove approvals list [--state STATE] [--run AGENT] [--json]", act: list(methods.ApprovalList).columns("ID", "STATE", "KIND", "AGENT", "WHAT", "AGE")},
			{line: "clove approvals show [--json] ID", act: ask(methods.ApprovalGet).shows(showQuestion)},
			{line: "clove approvals allow [--for TIME] [--reason TEXT] [--json] ID", act: answer(true)},
			{line: "clove approvals deny [--reason TEXT] [--json] ID", act: answer(false)},
		},
		description: "An agent that was started with --ask asks people about what no rule decides, and waits. allow lets it do exactly what is shown,\n" +
			"to the end of the run or for TIME, such as 1h; deny refuses it. TEXT is kept with the answer. Of a question that waits, as much of\n" +
			"the beginning of its ID as is unique is enough. STATE is waiting, allowed, denied, expired or gone. Root answers for all users.",
		flags: []cli.Flag{
			&cli.StringFlag{Name: flagJobState, Usage: "list: those in this state"},
			&cli.StringFlag{Name: flagRun, Usage: "list: those of this run"},
			value("", flagFor, "", "allow: how long it holds", "to the end of the run"),
			&cli.StringFlag{Name: flagReason, Usage: "allow, deny: why; it is kept with the answer"},
			jsonFlag("print JSON"),
		},
	}
}

// answer answers the question that it has read a moment ago.
func answer(allow bool) *call[api.ApprovalRespondParams, api.ApprovalResult] {
	a := &call[api.ApprovalRespondParams, api.ApprovalResult]{ask: func(_ *screen, l *line, d *client.Client, params api.ApprovalRespondParams) (result api.ApprovalResult, err error) {
		seen, err := client.Do(l.Context.Context, d, methods.ApprovalGet, api.ApprovalGetParams{ID: params.ID})
		if err != nil {
			return result, err
		}
		params.Run, params.ID, params.Digest, params.Allow = string(seen.Approval.Run), seen.Approval.ID, seen.Approval.Digest, allow
		return client.Do(l.Context.Context, d, methods.ApprovalRespond, params)
	}}
	return a.shows(showQuestion)
}

func showQuestion(s *screen, l *line, r api.ApprovalResult) error {
	if l.Bool(flagJSON) {
		return s.printJSON(verbs.Content(r))
	}
	return s.printLines(questionLines(r.Approval))
}

// questionLines are a question as people read it. What an agent chose is quoted.
func questionLines(a api.Approval) (lines []any) {
	lines = append(lines, fmt.Sprintf("%s asks to %s", agentText(a), quoted(a.What)))
	lines = append(lines, questionParts(a)...)
	ends := "refused"
	if a.Budget != nil {
		ends = "refused (it stays paused)"
	}
	var all strings.Builder
	fmt.Fprintf(&all, "  %s: %s", a.ID, a.State)
	switch {
	case a.State == api.ApprovalWaits:
		fmt.Fprintf(&all, ", and %s at %s", ends, a.Expires.Local().Format(time.DateTime))
	case !a.Until.IsZero():
		fmt.Fprintf(&all, " until %s", a.Until.Local().Format(time.DateTime))
	}
	for _, answer := range a.Answers {
		fmt.Fprintf(&all, ", %s by user %d", map[bool]string{true: "allowed", false: "denied"}[answer.Allow], answer.UID)
		if answer.Reason != "" {
			fmt.Fprintf(&all, ": %s", quoted(answer.Reason))
		}
	}
	return append(lines, all.String())
}

// budgetOf names the budget that a question is about.
func budgetOf(a api.Approval) string {
	if a.Budget.Account == string(budget.RunKey(a.Owner, a.Run)) {
		return "the budget of this run"
	}
	return a.Budget.Account
}

// askedText is what a run asked people, and what it did not need to ask; empty: nothing could be asked.
func askedText(of *agent.Asked) string {
	if of == nil || of.Questions+of.ByRule == 0 {
		return ""
	}
	text := "asked people " + many(of.Questions, "once", "%d times")
	var parts []string
	for _, part := range []struct {
		n    int64
		text string
	}{{of.Allowed, "allowed"}, {of.Denied, "denied"}, {of.Expired, "not answered in time"}} {
		if part.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", part.n, part.text))
		}
	}
	if len(parts) > 0 {
		text += " (" + strings.Join(parts, ", ") + ")"
	}
	if of.ByRule > 0 {
		text += ", " + many(of.ByRule, "1 connection was", "%d connections were") + " decided by a rule"
	}
	return text
}

// many is a number of things in words.
func many(n int64, one, more string) string {
	if n == 1 {
		return one
	}
	return fmt.Sprintf(more, n)
}

func agentText(a api.Approval) string {
	text := fmt.Sprintf("%s (run %s of user %d", a.Agent, a.Run, a.Owner)
	if a.Namespace != "" {
		text += ", namespace " + a.Namespace
	}
	return text + ")"
}

// quoted makes characters visible that are not, or that change the direction of a text.
func quoted(text string) string {
	q := fmt.Sprintf("%+q", text)
	if plain := q[1 : len(q)-1]; plain == text {
		return text
	}
	return q
}
