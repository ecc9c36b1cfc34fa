package main

import (
	"fmt"
	"strings"

	"clove.run/clove/api"
)

// yesTexts say for each kind of question what a yes does, and ruleTexts what the rule would be.
var yesTexts = map[api.ApprovalKind]string{
	api.ApproveNet:   "a yes adds the rule --allow %s to this run",
	api.ApproveSpawn: "a yes starts it once",
}

var ruleTexts = map[api.ApprovalKind]string{
	api.ApproveSpawn: "a rule for it would be: clove grant give %s %s",
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
	if text := yesTexts[a.Kind]; text != "" {
		if strings.Contains(text, "%") {
			text = fmt.Sprintf(text, quoted(a.Rule))
		}
		also := "and nothing else"
		if a.Also != "" {
			also = "and with that: " + quoted(a.Also)
		}
		line("%s, %s", text, also)
	}
	if text := ruleTexts[a.Kind]; text != "" {
		line(text, a.Agent, quoted(a.Rule))
	}
	return lines
}
