package main

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/contract"
	"clove.run/clove/api/methods"
)

const apiName = "api"

func apiCommand() command {
	return command{
		task: "administer", usage: "list the methods of the API, and compare them with others",
		verbs: []verb{
			{line: "clove api list [--json]", act: prints(apiList)},
			{line: "clove api diff [--json] FILE|VERSION", act: prints(apiDiff)},
		},
		description: "list shows each method with its tier and who may call it: root, member (a user who may connect to cloved), owner (of the\n" +
			"run) and agent (over its own socket). With --json, list prints the whole contract, with all parameters and results.\n" +
			"diff shows what this clove has changed since FILE, which list --json of another clove printed, or since a VERSION of\n" +
			"the contract. Its exit status is 1 if a change breaks programs that work with the other one. cloved need not run.",
		flags: []cli.Flag{jsonFlag("write the contract, or the changes, as JSON")},
	}
}

func apiList(s *screen, c *cli.Context) error {
	if c.Bool(flagJSON) {
		return s.printJSON(contract.Current())
	}
	rows := [][]string{{"METHOD", "TIER", "CALLERS", "WHAT IT DOES"}}
	for _, m := range methods.All() {
		rows = append(rows, []string{m.Name, string(m.Tier), strings.Join(m.Access.Callers(), ","), m.Summary()})
	}
	return printTable(s.out, rows)
}

// contractChanges is the answer of clove api diff.
type contractChanges struct {
	From     int               `json:"from"` // contract versions
	To       int               `json:"to"`
	Breaking bool              `json:"breaking"`
	Changes  []contract.Change `json:"changes"`
}

func apiDiff(s *screen, c *cli.Context) error {
	old, err := otherContract(c.Args().Get(1))
	if err != nil {
		return err
	}
	now := contract.Current()
	d := contractChanges{From: old.Version, To: now.Version, Changes: append([]contract.Change{}, contract.Diff(old, now)...)}
	d.Breaking = slices.ContainsFunc(d.Changes, func(c contract.Change) bool { return c.Breaking })
	if len(d.Changes) == 0 && !c.Bool(flagJSON) {
		return s.printLines([]any{"nothing has changed"})
	}
	if err := s.printResult(c, d, d.Changes, []string{"CHANGE", "TIER", "OF", "WHAT"}); err != nil {
		return err
	}
	if d.Breaking {
		return exitStatus(exitFailed)
	}
	return nil
}

// otherContract reads what clove api diff compares with.
func otherContract(name string) (contract.Contract, error) {
	if version, err := strconv.Atoi(name); err == nil {
		old, err := contract.Of(version)
		if err != nil {
			return old, invalid("", fmt.Sprintf("versions are 1 to %d; a file may also be named ./%s", api.Version, name), "%v", err)
		}
		return old, nil
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return contract.Contract{}, &agent.Error{Kind: agent.KindNotFound, Step: apiName, Message: "cannot read the other contract", Hint: "clove api list --json prints one", Err: err}
	}
	old, err := contract.Parse(text)
	if err != nil {
		return old, &agent.Error{Kind: agent.KindInvalid, Step: apiName, Message: fmt.Sprintf("%.256q is no contract", name), Hint: "clove api list --json prints one", Err: err}
	}
	return old, nil
}
