package main

import (
	"fmt"
	"strconv"
	"time"

	"github.com/urfave/cli/v2"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/methods"
	"clove.run/clove/client"
)

func (p *program) eventsCommand() *cli.Command {
	return &cli.Command{
		Name: "events", Usage: "show what happens to runs, as it happens", UsageText: "clove events [--after NUMBER] [--since WHEN] [--run NAME|ID] [--once] [--json]",
		Description: "Every event has a number. --after with the last number that you saw misses nothing, also after a restart of cloved.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: flagAfter, Usage: "begin behind the event with this number", DefaultText: "now"},
			&cli.StringFlag{Name: flagSince, Usage: "only what is newer: 10m, or 2026-01-02T15:04:05Z"},
			&cli.StringFlag{Name: flagRun, Usage: "only of this run"},
			&cli.BoolFlag{Name: flagOnce, Usage: "end when all that has happened is shown", DisableDefaultText: true},
			jsonFlag("write each event as a JSON object"),
		},
		Action: withoutArguments(p.events),
	}
}

const (
	flagRun  = "run"
	flagOnce = "once"
)

// events begins with the next event unless a number or a time is given. --once without
// either shows everything that is kept.
func (p *program) events(c *cli.Context) error {
	params := api.EventParams{Follow: !c.Bool(flagOnce), Run: c.String(flagRun)}
	var err error
	if params.Since, err = parseSince(c.String(flagSince), time.Now()); err != nil {
		return err
	}
	if text := c.String(flagAfter); text != "" {
		number, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			return invalid(flagAfter, "write an event's number; 0 shows all that is kept", "%q is not a number", text)
		}
		params.After = &number
	} else if !params.Follow || !params.Since.IsZero() {
		// Number 0 is before the first event that is kept; absent means only what
		// comes.
		params.After = new(uint64)
	}
	d, err := p.cloved(c)
	if err != nil {
		return err
	}
	defer d.Close()
	_, err = client.Each(c.Context, d, methods.EventFollow, params, func(note api.EventNote) error {
		// cloved keeps a limited number of events.
		if note.Gap {
			p.say("clove", cyan, "earlier events are no longer stored")
		}
		if note.Event == nil {
			return nil
		}
		if c.Bool(flagJSON) {
			return writeLine(p.out, note.Event)
		}
		_, err := fmt.Fprintln(p.out, eventLine(*note.Event))
		return err
	})
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
