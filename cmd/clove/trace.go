package main

import (
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"clove.run/clove/api"
	"clove.run/clove/api/methods"
	"clove.run/clove/audit"
)

// The flags of clove trace: how many steps it shows, and that it shows effects.
const (
	flagDepth = "depth"
	flagDown  = "down"
)

func traceCommand() command {
	return command{
		task: "look", usage: "show from what something follows, or what follows from it",
		verbs: []verb{{line: "clove trace [--down] [--depth N] [--json] ID", act: ask(methods.AuditTrace).shows(showTrace)}},
		description: "ID is that of an event of an agent's, of a call (causation in clove events --json, in a message or in the audit log), of a\n" +
			"message or of a run, or the number of an event. Its step comes first, and behind each step what it follows from: a reply\n" +
			"from the message that asks, a run from the call that started it, and so on up to what a user or root began. With --down what\n" +
			"follows from it: of a message what its receivers did because of it, of a run all that it did, and so on.",
		flags: []cli.Flag{
			boolean("", flagDown, "", "show what follows from it, each record below its cause"),
			value("", flagDepth, "", "show at most so many steps, up to 100", "10"),
			jsonFlag("write an object with the steps"),
		},
	}
}

func showTrace(s *screen, l *line, result api.TraceResult) error {
	steps := slices.Clone(result.Steps)
	for i := range steps {
		if steps[i].Kind == string(audit.KindAdmin) {
			steps[i].Agent = "" // the caller is shown
		}
		steps[i].Method = strings.Repeat("  ", steps[i].Depth) + steps[i].Method
	}
	err := s.printResult(l.Context, result, steps, []string{"WHEN", "ID", "AGENT", "METHOD", "WHAT", "BODY"})
	if err == nil && result.Truncated && !l.Bool(flagJSON) {
		s.say("clove", cyan, "there are more steps: --depth, or the id of one of these")
	}
	return err
}
