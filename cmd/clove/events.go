package main

import (
	"fmt"

	"github.com/urfave/cli/v2"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/methods"
)

func eventsCommand() command {
	return command{
		task: "look", usage: "show what happens to runs, as it happens",
		verbs:       []verb{{line: "clove events [--after NUMBER] [--since WHEN] [--run NAME|ID] [--once] [--json]", act: stream(methods.EventFollow, showEvent).fills(fillEvents)}},
		description: "Every event has a number. --after with the last number that you saw misses nothing, also after a restart of cloved.",
		flags: []cli.Flag{
			&cli.StringFlag{Name: flagAfter, Usage: "begin behind the event with this number", DefaultText: "now"},
			&cli.StringFlag{Name: flagSince, Usage: "only what is newer: 10m, or 2026-01-02T15:04:05Z"},
			&cli.StringFlag{Name: flagRun, Usage: "only of this run"},
			&cli.BoolFlag{Name: flagOnce, Usage: "end when all that has happened is shown", DisableDefaultText: true},
			jsonFlag("write each event as a JSON object"),
		},
	}
}

const (
	flagRun  = "run"
	flagOnce = "once"
)

// fillEvents begins with the next event unless a number or a time is given. --once without
// either shows everything that is kept.
func fillEvents(l *line, params *api.EventParams) error {
	params.Follow = !l.Bool(flagOnce)
	if params.After == nil && (!params.Follow || !params.Since.IsZero()) {
		params.After = new(uint64) // before the first event that is kept; absent means only what comes
	}
	return nil
}

func showEvent(s *screen, l *line, note api.EventNote) error {
	// cloved keeps a limited number of events.
	if note.Gap {
		s.say("clove", cyan, "earlier events are no longer stored")
	}
	if note.Event == nil {
		return nil
	}
	if l.Bool(flagJSON) {
		return writeLine(s.out, note.Event)
	}
	_, err := fmt.Fprintln(s.out, eventLine(*note.Event))
	return err
}

// eventLine is one line for people. Names and details may come from agents, so they are
// made printable.
func eventLine(e agent.RunEvent) string {
	line := fmt.Sprintf("%d %s %s %s (%s)", e.Sequence, e.Time.Local().Format("2006-01-02T15:04:05.000"), e.Kind, printable(shown(agent.RunName{UID: e.Owner.UID, Name: e.Name})), e.ID[:min(len(e.ID), shortID)])
	if e.ExitCode != nil {
		line += fmt.Sprintf(" %s %d", e.Status, *e.ExitCode)
	}
	if e.Detail != "" {
		line += ": " + printable(e.Detail)
	}
	return line
}
