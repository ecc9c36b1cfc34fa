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
const (
	flagFor     = "for"
	flagThisRun = "this-run"
	flagAlways  = "always"
)

func approvalsCommand() command {
	return command{
		task: "decide", usage: "see what agents ask people, and answer",
		verbs: []verb{
			{line: "clove approvals list [--state STATE] [--run AGENT] [--json]", act: list(methods.ApprovalList).columns("ID", "STATE", "KIND", "AGENT", "WHAT", "AGE")},
			{line: "clove approvals show [--json] ID", act: showApproval()},
			{line: "clove approvals allow [--once] [--this-run] [--for TIME] [--always] [--policy POLICY] [--reason TEXT] [--json] ID", act: answer(true)},
			{line: "clove approvals deny [--reason TEXT] [--json] ID", act: answer(false)},
			{line: "clove approvals suggest [--run AGENT] [--json]", act: suggestRules()},
		},
		description: "An agent that was started with --ask asks people about what no rule decides, and waits. allow lets it do exactly what is shown,\n" +
			"to the end of the run (--this-run) or for TIME, such as 1h, or one time (--once); deny refuses it. --always also adds the rule to a\n" +
			"policy of yours: that of the run, POLICY, or else approved, for runs with --policy approved. suggest lists rules that would have\n" +
			"covered what was allowed; it changes nothing. TEXT is kept with the answer. Of a question that waits, as much of\n" +
			"the beginning of its ID as is unique is enough. STATE is waiting, allowed, denied, expired or gone. Root answers for all users.",
		flags: []cli.Flag{
			&cli.StringFlag{Name: flagJobState, Usage: "list: those in this state"},
			&cli.StringFlag{Name: flagRun, Usage: "list: those of this run"},
			value("", flagFor, "", "allow: how long it holds", "to the end of the run"),
			&cli.BoolFlag{Name: flagOnce, Usage: "allow: one connection, and no other", DisableDefaultText: true},
			&cli.BoolFlag{Name: flagThisRun, Usage: "allow: to the end of the run, as without it", DisableDefaultText: true},
			&cli.BoolFlag{Name: flagAlways, Usage: "allow: add the rule to a policy of yours, too", DisableDefaultText: true},
			&cli.StringFlag{Name: flagPolicy, Usage: "allow --always: the policy of yours"},
			&cli.StringFlag{Name: flagReason, Usage: "allow, deny: why; it is kept with the answer"},
			jsonFlag("print JSON"),
		},
	}
}

// oneYes refuses a yes that is to hold for several times.
func oneYes(l *line) error {
	given := 0
	for _, flag := range []string{flagOnce, flagThisRun, flagFor, flagAlways} {
		if l.IsSet(flag) {
			given++
		}
	}
	switch {
	case given > 1:
		return invalid(flagOnce, "give one of --once, --this-run, --for and --always", "an answer holds for one time")
	case l.IsSet(flagPolicy) && !l.Bool(flagAlways):
		return invalid(flagPolicy, "add --always", "no rule is added to a policy")
	}
	return nil
}

// answer answers the question that it has read a moment ago.
func answer(allow bool) *call[api.ApprovalRespondParams, api.ApprovalResult] {
	a := &call[api.ApprovalRespondParams, api.ApprovalResult]{ask: func(s *screen, l *line, d *client.Client, params api.ApprovalRespondParams) (result api.ApprovalResult, err error) {
		if err := oneYes(l); err != nil {
			return result, err
		}
		seen, err := client.Do(l.Context.Context, d, methods.ApprovalGet, api.ApprovalGetParams{ID: params.ID})
		if err != nil {
			return result, err
		}
		params.Run, params.ID, params.Digest, params.Allow, params.Once = string(seen.Approval.Run), seen.Approval.ID, seen.Approval.Digest, allow, l.Bool(flagOnce)
		var more *always
		if l.Bool(flagAlways) {
			if more, err = planAlways(l, d, seen.Approval); err != nil {
				return result, err
			}
		}
		result, err = client.Do(l.Context.Context, d, methods.ApprovalRespond, params)
		if err == nil && more != nil {
			if err = more.write(); err == nil {
				s.say("clove", cyan, more.says())
			}
		}
		return result, err
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
	if a.Needed > 1 {
		lines = append(lines, fmt.Sprintf("  %d users must say yes, and %d have", a.Needed, len(a.Answers)))
	}
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
	case !a.Used.IsZero():
		all.WriteString(" once, and used")
	case a.Once:
		all.WriteString(" once")
	case !a.Until.IsZero():
		fmt.Fprintf(&all, " until %s", a.Until.Local().Format(time.DateTime))
	}
	for _, answer := range a.Answers {
		by := "user"
		if answer.Command {
			by = "the command of user"
		}
		fmt.Fprintf(&all, ", %s by %s %d", map[bool]string{true: "allowed", false: "denied"}[answer.Allow], by, answer.UID)
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
	text := fmt.Sprintf("%s (run %s of user %d", quoted(a.Agent), a.Run, a.Owner)
	if a.Namespace != "" {
		text += ", namespace " + quoted(a.Namespace)
	}
	return text + ")"
}

// quoted makes characters visible that are not ASCII or not printable, and puts what could be taken for clove's own words into
// quotes: all that is not a word, a name or a target behind one.
func quoted(text string) string {
	q := fmt.Sprintf("%+q", text)
	plain := q[1:len(q)-1] == text && !strings.ContainsFunc(text, func(c rune) bool {
		return !strings.ContainsRune(" -._:/@=*[]", c) && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z')
	})
	if plain && strings.Count(text, " ") <= 2 {
		return text
	}
	return q
}
