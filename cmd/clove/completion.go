package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"clove.run/clove/agent"
)

// shells maps each shell to the function that writes its script. The scripts come from
// the table of commands, so they cannot be out of date.
var shells = map[string]func([]completed) string{
	"bash": bashCompletion,
	"zsh":  zshCompletion,
	"fish": fishCompletion,
}

func completionCommand() command {
	names := strings.Join(slices.Sorted(maps.Keys(shells)), "|")
	return command{
		task: "administer", usage: "write a completion script for a shell",
		verbs:       []verb{{line: "clove completion " + names, act: by(complete), free: true}},
		description: "bash: source <(clove completion bash)\nzsh:  clove completion zsh > \"${fpath[1]}/_clove\"\nfish: clove completion fish > ~/.config/fish/completions/clove.fish",
	}
}

// complete writes a script, or, called by such a script, the names of runs.
func complete(p program, c *cli.Context) error {
	// The scripts call clove itself for the names of runs.
	if args := c.Args().Slice(); len(args) == 1 && (args[0] == completeLive || args[0] == completeAll) {
		return completeRuns(p, c, args[0] == completeAll)
	}
	script, known := shells[c.Args().First()]
	if !known || c.NArg() != 1 {
		return &agent.Error{Kind: agent.KindInvalid, Step: "completion", Message: fmt.Sprintf("it takes one shell, not %q", c.Args().Slice()),
			Hint: "clove completion " + strings.Join(slices.Sorted(maps.Keys(shells)), "|")}
	}
	_, err := fmt.Fprint(p.out, script(completions(table())))
	return err
}

// The arguments with which the scripts ask for names of runs, at each press of the
// completion key.
const (
	completeLive = "live-runs"
	completeAll  = "all-runs"
)

// completeRuns writes names of runs. They need no quotes in any shell:
// agent.ValidateName allows no such characters.
func completeRuns(p program, c *cli.Context, all bool) error {
	listed, err := p.list(c, all)
	if err != nil {
		return err
	}
	for _, one := range listed {
		if _, err := fmt.Fprintln(p.out, shown(one.Run.Name())); err != nil {
			return err
		}
	}
	return nil
}

// completed is a command as a completion script sees it.
type completed struct {
	name, usage string
	verbs       []string // its first argument is one of these; empty: it is as the others
	runs        string   // which runs its arguments name; empty: they are files
	flags       []completedFlag
}

type completedFlag struct {
	long, short, usage string // without dashes; short may be empty
	takesValue         bool
}

// completions leaves out hidden commands, which only clove's own programs call.
func completions(commands []command) []completed {
	var all []completed
	for _, c := range commands {
		if c.task == "" {
			continue
		}
		entry := completed{name: c.name(), usage: c.usage, verbs: slices.Sorted(slices.Values(c.verbNames())), runs: c.runs}
		for _, f := range slices.Concat(c.flags, globalFlags()) {
			row := completedFlag{long: f.Names()[0], usage: described(f).GetUsage(), takesValue: described(f).TakesValue()}
			// The second name is the short one: value and boolean add it so.
			if len(f.Names()) > 1 && len(f.Names()[1]) == 1 {
				row.short = f.Names()[1]
			}
			// A command's own flag may have the name of a global one.
			if !slices.ContainsFunc(entry.flags, func(other completedFlag) bool { return other.long == row.long }) {
				entry.flags = append(entry.flags, row)
			}
		}
		all = append(all, entry)
	}
	return all
}
