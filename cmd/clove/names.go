package main

import (
	"github.com/urfave/cli/v2"

	"clove.run/clove/api"
	"clove.run/clove/api/methods"
)

// Flags of clove name that no other command has.
const (
	flagPrefix = "prefix"
	flagTag    = "tag"
)

func nameCommand() command {
	return command{
		task: "share", usage: "list, reserve and remove names of agents",
		verbs: []verb{
			{line: "clove name ls [--owner UID] [--namespace NAMESPACE] [--prefix TEXT] [--tag TAG] [--json]",
				act: list(methods.NameQuery).columns("NAME", "NAMESPACE", "RUNS", "RESERVED", "TAGS")},
			{line: "clove name reserve [--owner UID] [--namespace NAMESPACE] [--manifest NAME] [--json] NAME [TAG...]",
				act: ask(methods.NameReserve).shows(says(func(l *line, _ api.NameResult) string { return l.args[0] }))},
			{line: "clove name rm [--owner UID] [--namespace NAMESPACE] NAME",
				act: ask(methods.NameRemove).shows(says(func(l *line, _ api.Nothing) string { return l.args[0] }))},
		},
		description: "Agents register names (name.register), and lose them when they end. reserve keeps a name also while no agent has it:\n" +
			"mail to it waits for one that registers it. With --manifest, mail with wake starts a run of that manifest, which has the\n" +
			"name; you pay for it. rm takes a name from all that have it, and ends the reservation. ls shows\n" +
			"the names of your namespaces, and topic/T with the subscribers of the topic T; root sees all names.",
		flags: []cli.Flag{
			&cli.StringFlag{Name: flagOwner, Usage: "the names of this user ID; for root"},
			&cli.StringFlag{Name: flagNamespace, Usage: "the names of this namespace; without it rm and reserve mean those of no namespace"},
			&cli.StringFlag{Name: flagPrefix, Usage: "ls: names that begin with this"},
			&cli.StringFlag{Name: flagTag, Usage: "ls: names that have this tag, or a run with it"},
			&cli.StringFlag{Name: flagManifest, Usage: "reserve: what mail with wake starts while no run has the name"},
			jsonFlag("ls: write the names as a JSON array; reserve: the name as an object"),
		},
	}
}
