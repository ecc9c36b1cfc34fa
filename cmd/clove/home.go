package main

import (
	"os"

	"github.com/urfave/cli/v2"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/methods"
)

// homes are the kept homes of this host's users.
type homes interface {
	Homes(uid uint32) ([]agent.KeptHome, error)
	RemoveHome(ref string, uid uint32) error
}

func homeCommand() command {
	return command{
		task: "change", usage: "list, copy and remove the homes that clove run --home keeps",
		verbs: []verb{
			{line: "clove home ls [--json]", act: ask(methods.HomeList).without(homesAlone)},
			{line: "clove home export NAME [INSIDE]", act: by(program.exportHome)},
			{line: "clove home import NAME [INSIDE]", act: by(program.importHome)},
			{line: "clove home rm HOME", act: ask(methods.HomeRemove).without(removeHomeAlone).shows(says(func(l *line, _ api.Nothing) string { return l.args[0] }))},
		},
		description: "HOME is an id of ls, or the name if only one folder of yours has a home with it. Root lists everybody's, and removes\n" +
			"those of others by their ids. A home that a run has is not removed; with it go the folders that are kept with it. export\n" +
			"writes the home NAME of this folder to stdout as a tar, import adds the files of one from stdin: with INSIDE, a path as\n" +
			"/memory, those of this kept folder. tar runs in a sandbox.",
		flags: []cli.Flag{jsonFlag("write the list as a JSON array")},
	}
}

func homesAlone(a *access, l *line, _ error) (func(api.Nothing) (api.HomesResult, error), error) {
	b, err := a.ownStore(l.Context)
	return func(api.Nothing) (result api.HomesResult, err error) {
		result.Homes, err = b.Homes(uint32(os.Geteuid()))
		return result, err
	}, err
}

func removeHomeAlone(a *access, l *line, _ error) (func(api.HomeParams) (api.Nothing, error), error) {
	b, err := a.ownStore(l.Context)
	return func(params api.HomeParams) (none api.Nothing, err error) {
		return none, b.RemoveHome(params.Home, uint32(os.Geteuid()))
	}, err
}
