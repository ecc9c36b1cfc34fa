package main

import (
	"fmt"
	"strings"

	"clove.run/clove/agent"
	"clove.run/clove/policies/advice"
	"clove.run/clove/policies/shadow"
)

// reportShadow says at the start of a run where its shadow says nothing.
func reportShadow(s *screen, spec agent.Spec) {
	if spec.Shadow == nil {
		return
	}
	if wider := shadow.Wider(spec); len(wider) > 0 {
		s.say("clove", cyan, "the shadow policy "+spec.Shadow.Policy.Name+" is wider than the run's own in "+strings.Join(wider, ", ")+": there it says nothing")
	}
}

// reportShadowUse says at the end what the shadow would have refused. Without a record to look at
// the rules are named at once.
func reportShadowUse(s *screen, record agent.Record, spec agent.Spec) {
	use := record.Shadow
	if use == nil {
		return
	}
	line := use.Summary()
	if use.Refused > 0 || len(use.Limits) > 0 {
		where := "clove why " + spec.Name + " shows each"
		if spec.Remove {
			where = "--" + flagResult + " FILE keeps each"
		}
		line += " (" + where + ")"
	}
	s.say("clove", cyan, line)
}

// whyShadow is what clove why writes about a run's shadow.
type whyShadow struct {
	Policy  string      `json:"policy"`
	Summary string      `json:"summary"`
	Denials []whyDenial `json:"denials"`
	Limits  []whyLimit  `json:"limits"`
	Others  int64       `json:"others,omitempty"`
	Wider   []string    `json:"wider,omitempty"`
	Unseen  []string    `json:"unseen,omitempty"`
}

// whyLimit is a limit that would not have been enough, with the line that would be.
type whyLimit struct {
	agent.ShadowLimit
	Line string `json:"line"` // of the policy
}

// shadowOf is what a record says of a shadow; nil: there is none.
func shadowOf(run agent.Run) *whyShadow {
	if run.Record == nil || run.Record.Shadow == nil || run.Spec.Shadow == nil {
		return nil
	}
	use := run.Record.Shadow
	of := &whyShadow{Policy: use.Policy.String(), Summary: use.Summary(), Denials: []whyDenial{}, Limits: []whyLimit{}, Others: use.Others, Wider: use.Wider, Unseen: use.Unseen}
	under := run.Spec.Shadowed()
	for _, d := range use.Denials {
		of.Denials = append(of.Denials, whyDenial{d, advice.Of(under, d)})
	}
	for _, l := range use.Limits {
		of.Limits = append(of.Limits, whyLimit{l, advice.OfShadow(l)})
	}
	return of
}

// lines are the section of clove why for people.
func (s *whyShadow) lines() []string {
	lines := []string{s.Summary}
	for _, l := range s.Limits {
		lines = append(lines, fmt.Sprintf("would have been refused by %s: more than %s, %s; it was %s", s.Policy, l.Place, advice.ShadowUnit(l.Place, l.Value), advice.ShadowUnit(l.Place, l.Peak)),
			"  policy: "+l.Line)
	}
	for _, d := range s.Denials {
		d.Advice.Flag = "" // a flag would widen the run's own policy, too
		text := denialLines(d)
		text[0] = "would have been refused by " + s.Policy + strings.TrimPrefix(text[0], "refused")
		lines = append(lines, text...)
	}
	if s.Others > 0 {
		lines = append(lines, fmt.Sprintf("would have been refused by %s: %d times, other targets for which the record has no space", s.Policy, s.Others))
	}
	if len(s.Wider) > 0 {
		lines = append(lines, s.Policy+" is wider than the run's own policy in "+strings.Join(s.Wider, ", ")+": there it says nothing")
	}
	if len(s.Unseen) > 0 {
		lines = append(lines, s.Policy+" is narrower in "+strings.Join(s.Unseen, ", ")+" too, and nothing shows whether that would have mattered")
	}
	return lines
}
