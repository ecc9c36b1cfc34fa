package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/urfave/cli/v2"

	"clove.run/clove/agent"
	"clove.run/clove/policies"
	"clove.run/clove/policies/host"
	"clove.run/clove/policies/resolve"
)

func (p policyVerbs) show(c *cli.Context) error {
	policy, err := p.load(c.Args().Get(1))
	if err != nil {
		return err
	}
	if c.Bool(flagJSON) {
		values := map[string]string{}
		for _, v := range policy.Document.Written() {
			values[v.Key] = v.Text
		}
		return p.printJSON(struct {
			Policy agent.Policy      `json:"policy"`
			Chain  []resolve.Link    `json:"chain"`
			Values map[string]string `json:"values"`
		}{policy.Spec.Policy, policy.Chain, values})
	}
	if c.Bool(flagResolved) {
		return p.printList(c, policy.Document.Written())
	}
	for i, link := range policy.Chain {
		if i > 0 {
			fmt.Fprintln(p.out)
		}
		fmt.Fprintf(p.out, "# %s: %s\n", printable(link.Name), printable(link.Source))
		if err := printDocument(p.out, link); err != nil {
			return err
		}
		for _, w := range link.Widened {
			fmt.Fprintf(p.out, "# wider: %s, because: %s\n", printable(w.Difference.String()), printable(w.Reason))
		}
	}
	return nil
}

// printDocument prints a document as it is written.
func printDocument(to io.Writer, link resolve.Link) error {
	text, ok := policies.Level(link.Name)
	if !ok {
		var err error
		if text, err = host.ReadBounded(link.Source, policies.MostBytes); err != nil {
			return err
		}
	}
	for line := range strings.Lines(string(text)) {
		fmt.Fprintln(to, printable(strings.TrimRight(line, "\n")))
	}
	return nil
}
