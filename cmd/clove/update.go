package main

import (
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/urfave/cli/v2"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/methods"
	"clove.run/clove/policies/build"
)

// flagNoRules stands for an empty list, which --allow and --deny cannot express.
const flagNoRules = "no-rules"

func updateCommand() command {
	return command{
		task: "change", runs: completeLive, usage: "change limits and network rules of live runs",
		verbs:       []verb{{line: "clove update [flags] NAME|ID...", act: each(methods.RunUpdate).fills(fillUpdate)}},
		description: "Either all changes are made, or none. --allow and --deny replace all rules that the run had.",
		flags: []cli.Flag{
			value("", flagMemory, "m", "memory of the whole agent", ""),
			value("", flagMemorySwap, "", "memory and swap together; -1: any amount of swap", "the swap that it had"),
			value("", flagCPUs, "", "CPU seconds per second", ""),
			value("", flagPids, "", "processes and threads at once", ""),
			value("", flagTimeout, "", "wall clock time, counted from its start; 0: no limit", ""),
			values("", flagAllow, "", "reach TARGET", ""),
			values("", flagDeny, "", "never reach TARGET", ""),
			boolean("", flagNoRules, "", "remove all rules"),
		},
	}
}

// fillUpdate parses all flags before a run changes, so that a mistake in one changes none.
func fillUpdate(l *line, params *api.UpdateParams) (err error) {
	params.Update, err = readUpdate(l.Context)
	return err
}

// readUpdate parses the flags as run does. What is not given stays nil, which means no
// change.
func readUpdate(c *cli.Context) (agent.Update, error) {
	var u agent.Update
	any := slices.ContainsFunc([]string{flagMemory, flagMemorySwap, flagCPUs, flagPids, flagTimeout, flagAllow, flagDeny, flagNoRules}, c.IsSet)
	if !any {
		return u, invalid("", "clove update --memory 512M NAME", "nothing is to change")
	}
	for _, read := range []func(*cli.Context, *agent.Update) error{updateSizes, updateNumbers, updateRules} {
		if err := read(c, &u); err != nil {
			return u, err
		}
	}
	return u, nil
}

// updateSizes has the same floors as run: below them a sandbox cannot even be entered.
func updateSizes(c *cli.Context, u *agent.Update) error {
	if text := c.String(flagMemory); text != "" {
		n, err := build.ParseSize(flagMemory, text, agent.MemoryFloorBytes)
		if err != nil {
			return err
		}
		u.MemoryBytes = &n
	}
	switch text := c.String(flagMemorySwap); text {
	case "":
	case "-1":
		// -1 is a value and no size: the parser of sizes does not take it.
		u.MemorySwapBytes = new(int64)
		*u.MemorySwapBytes = -1
	default:
		n, err := build.ParseSize(flagMemorySwap, text, agent.MemoryFloorBytes)
		if err != nil {
			return err
		}
		u.MemorySwapBytes = &n
	}
	return nil
}

// updateNumbers has the same bounds as run. A timeout of 0 removes the limit, so it
// differs from one that is not given.
func updateNumbers(c *cli.Context, u *agent.Update) error {
	if text := c.String(flagCPUs); text != "" {
		n, err := strconv.ParseFloat(text, 64)
		if err != nil || math.IsNaN(n) || n < 0.01 || n > 1024 {
			return invalid(flagCPUs, "write a number such as 0.5", "%q is not a number of CPUs", text)
		}
		u.CPUs = &n
	}
	if text := c.String(flagPids); text != "" {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < agent.PidsFloor {
			return invalid(flagPids, "write a whole number of at least "+strconv.Itoa(agent.PidsFloor), "%q is not a number of processes", text)
		}
		u.Pids = &n
	}
	if text := c.String(flagTimeout); text != "" {
		d, err := build.ParseClock(flagTimeout, text)
		if err != nil {
			return err
		}
		u.WallClock = new(time.Duration)
		*u.WallClock = d
	}
	return nil
}

// updateRules replaces the whole list of rules. Adding to a list that somebody else may
// have changed in the meantime would give an unknown result.
func updateRules(c *cli.Context, u *agent.Update) error {
	if !c.IsSet(flagAllow) && !c.IsSet(flagDeny) && !c.Bool(flagNoRules) {
		return nil
	}
	if c.Bool(flagNoRules) && (c.IsSet(flagAllow) || c.IsSet(flagDeny)) {
		return invalid(flagNoRules, "omit one of them", "rules cannot be removed and given at the same time")
	}
	rules, err := build.ParseRules(c.StringSlice(flagAllow), c.StringSlice(flagDeny))
	rules = append([]agent.EgressRule{}, rules...) // null would mean no change
	u.Rules = &rules
	return err
}
