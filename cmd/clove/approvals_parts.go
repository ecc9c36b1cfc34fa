package main

import (
	"fmt"

	"clove.run/clove/api"
)

// yesTexts say for each kind of question what a yes does, and ruleTexts what the rule would be.
var yesTexts = map[api.ApprovalKind]func(a api.Approval) string{
	api.ApproveNet:   func(a api.Approval) string { return "adds the rule --allow " + quoted(a.Rule) + " to this run" },
	api.ApproveSpawn: func(api.Approval) string { return "starts it once" },
	api.ApproveSecret: func(a api.Approval) string {
		return "lets such requests carry it, whatever is in their body and their query"
	},
	api.ApproveTool: func(api.Approval) string { return "lets it call this tool with exactly these arguments" },
	api.ApproveApply: func(a api.Approval) string {
		return "writes them once, with the rights of user " + fmt.Sprint(a.Owner) + ", if they are still exactly these"
	},
	api.ApproveBudget: func(a api.Approval) string {
		return "adds " + quoted(a.Rule) + " to " + budgetOf(a) + ", as clove budget raise does"
	},
}

var ruleTexts = map[api.ApprovalKind]string{
	api.ApproveSpawn:  "a rule for it would be: clove grant give %s %s",
	api.ApproveSecret: "a rule for all of its uses would be: clove grant give %s %s",
}

// questionParts are what people see of a question beside its first line.
func questionParts(a api.Approval) (lines []any) {
	line := func(format string, values ...any) { lines = append(lines, "  "+fmt.Sprintf(format, values...)) }
	for _, part := range a.Shown {
		line("  %s", quoted(part))
	}
	if a.Says != "" {
		line("the agent says, and nothing has checked it: %s", quoted(a.Says))
	}
	if a.Cost != "" {
		line("it costs %s", quoted(a.Cost))
	}
	if text := yesTexts[a.Kind]; text != nil {
		also := "and nothing else"
		if a.Also != "" {
			also = "and with that: " + quoted(a.Also)
		}
		line("a yes %s, %s", text(a), also)
	}
	if a.Changes != nil && a.State == api.ApprovalWaits {
		line("the changed lines: clove approvals show %s", a.ID)
	}
	if text := ruleTexts[a.Kind]; text != "" {
		line(text, a.Agent, quoted(a.Rule))
	}
	return lines
}
