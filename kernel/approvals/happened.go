package approvals

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/kernel/service"
)

// made is the question that a supervisor asks about a run, and how long it waits.
func (a *Approvals) made(c *service.Call, run agent.Run, p api.ApprovalAskParams) (made Row, waits time.Duration, err error) {
	of, known := kinds[p.Kind]
	waits = cmp.Or(time.Duration(p.ExpiresMS)*time.Millisecond, of.lasts, lasts)
	switch {
	case !known || of.calls || of.stands || waits < 0 || waits > lastsMost || of.ask == nil && (p.What == "" || p.Rule == "") || len(p.What) > whatMost || len(p.Rule) > whatMost:
		return made, waits, api.Failure(api.CodeParams, "", "it is no question to people")
	case of.ask != nil:
		made, err = of.ask(a, c, run, p)
	default:
		made = Row{Approval: api.Approval{Kind: p.Kind, What: p.What, Rule: p.Rule}}
	}
	if err == nil {
		err = of.may(a, &made, run.Owner)
	}
	return made, waits, err
}

// OutcomeAsked is what Counted gets of a question that is new. The others are states.
const OutcomeAsked = "asked"

// happened notes an event about a question, and counts it.
func (a *Approvals) happened(out *service.Outcome, r *Row, kind agent.RunEventKind, detail, outcome string) {
	bounded := kind == agent.RunAsked || r.Withdrawn // an agent makes these as fast as it wants
	out.Events = append(out.Events, service.Event{Kind: kind, Run: r.Run, Detail: cut(detail), Bounded: bounded, Bound: kind})
	a.count(out, r, outcome)
}

func (a *Approvals) count(out *service.Outcome, r *Row, outcome string) {
	if kind := r.Kind; a.Counted != nil {
		out.Durable = append(out.Durable, func() { a.Counted(kind, outcome) })
	}
}

// cut bounds the detail of an event: clove approvals show has the question in full.
func cut(text string) string {
	if len(text) <= detailMost {
		return text
	}
	return strings.ToValidUTF8(text[:detailMost], "") + " …"
}

// concluded has what waits for a question look again, and notes how it ended.
func (a *Approvals) concluded(out *service.Outcome, r *Row) {
	detail := string(r.State)
	if n := len(r.Answers); n > 0 {
		detail += fmt.Sprintf(" by user %d", r.Answers[n-1].UID)
	}
	a.happened(out, r, agent.RunAnswered, detail+": "+r.What, string(r.State))
	out.Topics = append(out.Topics, topic(r.ID))
	if r.Call != "" && a.Answered != nil {
		call := service.Question{Run: r.Run, ID: r.Call}
		out.Durable = append(out.Durable, func() { _ = a.Answered(call) }) // it is tried again
	}
}
