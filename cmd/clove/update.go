package main

import (
	"github.com/urfave/cli/v2"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/methods"
	"clove.run/clove/policies/settings"
)

// flagNoRules means an empty list, which --allow and --deny cannot express.
const flagNoRules = "no-rules"

func updateCommand() command {
	return command{
		task: "change", runs: completeLive, usage: "change limits and network rules of live runs",
		verbs:       []verb{{line: "clove update [flags] NAME|ID...", act: each(methods.RunUpdate).fills(fillUpdate)}},
		description: "Either all changes are made, or none. --allow and --deny replace all rules that the run had.",
		flags:       updateFlags(),
	}
}

// fillUpdate parses all flags before a run changes, so that a mistake in one changes none.
func fillUpdate(l *line, params *api.UpdateParams) (err error) {
	params.Update, err = readUpdate(l.Context)
	return err
}

// updateFlags are those of the settings that can be changed, and --no-rules.
func updateFlags() (flags []cli.Flag) {
	for i := range settings.All() {
		switch s := &settings.All()[i]; {
		case s.Live == nil:
		case s.Many():
			flags = append(flags, values("", s.Flag, s.Short, s.Live.Usage, s.Live.Default))
		default:
			flags = append(flags, value("", s.Flag, s.Short, s.Live.Usage, s.Live.Default))
		}
	}
	return append(flags, boolean("", flagNoRules, "", "remove all rules"))
}

// readUpdate reads the flags. A flag that is not given leaves nil, which means no change.
func readUpdate(c *cli.Context) (u agent.Update, err error) {
	given := c.IsSet(flagNoRules)
	for i := range settings.All() {
		s := &settings.All()[i]
		if s.Live == nil || !c.IsSet(s.Flag) {
			continue
		}
		given = true
		if text := c.String(s.Flag); s.Live.Read != nil && text != "" {
			if err := s.Live.Read(text, &u); err != nil {
				return u, err
			}
		}
	}
	if !given {
		return u, invalid("", "clove update --memory 512M NAME", "nothing is to change")
	}
	return u, updateRules(c, &u)
}

// updateRules replaces the whole list of rules. Adding to a list that another user may
// have changed in the meantime would give an unknown result.
func updateRules(c *cli.Context, u *agent.Update) error {
	if !c.IsSet(settings.Allow) && !c.IsSet(settings.Deny) && !c.Bool(flagNoRules) {
		return nil
	}
	if c.Bool(flagNoRules) && (c.IsSet(settings.Allow) || c.IsSet(settings.Deny)) {
		return invalid(flagNoRules, "omit one of them", "rules cannot be removed and given at the same time")
	}
	rules, err := settings.ParseRules(c.StringSlice(settings.Allow), c.StringSlice(settings.Deny))
	rules = append([]agent.EgressRule{}, rules...) // null would mean no change
	u.Rules = &rules
	return err
}
