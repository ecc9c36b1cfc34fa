package main

import (
	"encoding/json"
	"strconv"

	"github.com/urfave/cli/v2"

	"clove.run/clove/api"
	"clove.run/clove/api/methods"
)

func stateCommand() command {
	gone := func(l *line, _ api.StateDeleteResult) string { return l.args[0] }
	version := func(_ *line, set api.StateSetResult) string { return strconv.FormatUint(set.Version, 10) }
	return command{
		task: "share", usage: "show and change keys that agents share",
		verbs: []verb{
			{line: "clove state ls [--namespace NAMESPACE] [--name NAME] [--owner UID] [--json] [KEY]",
				act: list(methods.StateQuery).columns("PATH", "VERSION", "BYTES", "CHANGED", "EXPIRES")},
			{line: "clove state get [--namespace NAMESPACE] [--name NAME] [--owner UID] [--json] KEY", act: getKey()},
			{line: "clove state set [--namespace NAMESPACE] [--name NAME] [--owner UID] [--file FILE] [--json] KEY [VALUE]",
				act: fromFile(ask(methods.StateWrite), "clove state set KEY VALUE, or --file FILE in place of VALUE", func(p *api.StateWriteParams) body { return body{p.Owner, &p.Value, &p.Blob} }).shows(says(version))},
			{line: "clove state rm [--namespace NAMESPACE] [--name NAME] [--owner UID] KEY", act: ask(methods.StateRemove).shows(says(gone))},
		},
		description: "KEY is a path such as plans/today, of the scope of a namespace, or with --name of that name in it. ls lists a key\n" +
			"and those below it, without KEY all. get prints the value, a JSON VALUE is set, and set prints its version. Keys of\n" +
			"one run alone are not shown. FILE is one that is JSON of at most 48 KiB, or is kept as a blob, of up to 64 MiB: get writes\n" +
			"that as it is. Without --namespace they are those of runs that have none.",
		flags: []cli.Flag{
			&cli.StringFlag{Name: flagNamespace, Usage: "the namespace of the runs", DefaultText: "none"},
			&cli.StringFlag{Name: flagName, Usage: "the scope of this name", DefaultText: "that of the namespace"},
			&cli.StringFlag{Name: flagOwner, Usage: "the user ID of the runs' owner; only root names another", DefaultText: "your own"},
			&cli.StringFlag{Name: flagFile, Usage: "set: the value is this file"},
			jsonFlag("ls: write an array; get, set: an object"),
		},
	}
}

// showState prints a key's value. One that there is not is an error.
func showState(s *screen, l *line, has api.StateResult) error {
	if has.Version == 0 {
		return api.Failure(api.CodeNotFound, "clove state ls shows those that there are", "there is no key %s", l.args[0])
	}
	if has.Blob != nil && !l.Context.Bool(flagJSON) {
		return nil // it is written
	}
	return s.answer(l.Context, has, string(has.Value))
}

// readValue reads a value of JSON.
func readValue(text string) (json.RawMessage, error) {
	if !json.Valid([]byte(text)) {
		return nil, invalid("", `write a text in quotes, as '"text"'`, "%.64q is no JSON", text)
	}
	return json.RawMessage(text), nil
}
