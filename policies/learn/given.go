package learn

import (
	"slices"
	"strings"

	"clove.run/clove/agent"
	"clove.run/clove/policies"
	"clove.run/clove/policies/settings"
)

// Given is what a run was allowed, as a document says it. left are reasons why a part of it is
// missing. Grants, budgets and variables are never a part: no run shows what of them is needed,
// and variables may be secrets.
func Given(spec agent.Spec) (d policies.Document, left []string) {
	return policies.Document{Values: settings.Given(spec)}, settings.Unwritten(spec)
}

// filesOf are the parts of a document's files that decide over what can be written.
func filesOf(d policies.Document) agent.Files {
	return agent.Files{ReadOnly: d.Text(settings.Root) == settings.RootReadOnly, Writable: d.Values[settings.Writable]}
}

// writesHost reports whether the agent writes into a directory of the host.
func writesHost(d policies.Document) bool {
	return slices.ContainsFunc(d.Values[settings.Volume], func(v string) bool { return !strings.HasSuffix(v, ":ro") })
}
