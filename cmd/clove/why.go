package main

import (
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"clove.run/clove/agent"
	"clove.run/clove/egress"
	"clove.run/clove/policies"
	"clove.run/clove/policies/build"
)

// whyCommand takes only the flags that decide over a connection.
func (p *program) whyCommand() *cli.Command {
	d := policies.Standard()
	wanted := []string{flagNetwork, flagAllow, flagDeny, flagHostPort, flagPolicy}
	flags := slices.DeleteFunc(slices.Concat(networkFlags(d), wallFlags(d)), func(f cli.Flag) bool {
		return !slices.Contains(wanted, f.Names()[0])
	})
	return &cli.Command{
		Name: "why", Usage: "say whether rules let an agent reach something, and which",
		UsageText: "clove why [udp://]HOST[:PORT] [--network MODE] [--allow TARGET] [--deny TARGET]",
		Description: "Nothing is sent to any server: a name is assumed to resolve to a public address.\n" +
			"Exit status: 0 if it can be reached, else 1.",
		Flags:  append(flags, jsonFlag("write the steps as JSON")),
		Action: p.why,
	}
}

// webPort is the port that is assumed for a HOST without one.
const webPort = 443

// why compiles the rules as a run does. It resolves and connects nothing.
func (p *program) why(c *cli.Context) error {
	if c.NArg() != 1 {
		return invalid("", "clove why HOST[:PORT] --allow TARGET", "it takes one target, not %d", c.NArg())
	}
	h, err := p.host()
	if err != nil {
		return err
	}
	spec, err := build.Network(requestOf(c), h)
	if err != nil {
		return err
	}
	rules, err := build.Rules(spec)
	if err != nil {
		return err
	}
	steps, err := whySteps(rules, c.Args().First())
	if err != nil {
		return err
	}
	return p.printWhy(c.Args().First(), spec, steps)
}

// whySteps reads the target and returns the decisions in their order.
func whySteps(rules *egress.Rules, target string) ([]egress.Finding, error) {
	proto, rest := egress.TCP, target
	if word, after, found := strings.Cut(target, "://"); found {
		if proto, rest = egress.Proto(word), after; proto != egress.TCP && proto != egress.UDP {
			return nil, invalid("", "write HOST:PORT; tcp:// or udp:// may stand before it", "%q is no target: %s is not a protocol that rules know", target, word)
		}
	}
	host, port, err := hostAndPort(rest)
	if err != nil {
		return nil, invalid("", "write HOST:PORT with a port from 1 to 65535", "%q is no target", target)
	}
	if port == 0 {
		port = webPort
	}
	return rules.Why(host, port, proto)
}

// hostAndPort splits HOST[:PORT]; port 0 means none was given.
func hostAndPort(text string) (host string, port uint16, err error) {
	host, number, splitErr := net.SplitHostPort(text)
	if splitErr != nil {
		return strings.TrimSuffix(strings.TrimPrefix(text, "["), "]"), 0, nil
	}
	port, err = build.ParsePort(number)
	return host, port, err
}

// printWhy prints the decisions. The exit status is the answer, for scripts.
func (p *program) printWhy(target string, spec agent.Spec, steps []egress.Finding) error {
	last := steps[len(steps)-1].Verdict
	if p.json {
		if err := p.printJSON(struct {
			Target  string           `json:"target"`
			Mode    string           `json:"mode"`
			Allowed bool             `json:"allowed"`
			Steps   []egress.Finding `json:"steps"`
		}{target, spec.Network, last.Allowed, steps}); err != nil {
			return err
		}
	} else {
		p.printSteps(target, spec, steps)
	}
	if !last.Allowed {
		return exitStatus(exitFailed)
	}
	return nil
}

// printSteps prints each question with its answer; the last answer decides.
func (p *program) printSteps(target string, spec agent.Spec, steps []egress.Finding) {
	for _, step := range steps {
		fmt.Fprintf(p.out, "%s: %s\n", printable(step.Question), verdictText(step.Verdict))
	}
	last := steps[len(steps)-1].Verdict
	if last.Allowed {
		fmt.Fprintf(p.out, "mode %s reaches %s\n", spec.Network, printable(target))
		return
	}
	fmt.Fprintf(p.out, "mode %s does not reach %s\n", spec.Network, printable(target))
	if last.Hint != "" {
		fmt.Fprintf(p.out, "hint: %s\n", printable(last.Hint))
	}
}

// verdictText is one decision in words, with the rule that made it.
func verdictText(v egress.Verdict) string {
	by := v.Rule
	if by != "" && v.Source != "" {
		by += " (" + v.Source + ")"
	}
	switch {
	case !v.Allowed && v.Detail != "":
		return "refused, " + v.Detail
	case !v.Allowed:
		return "refused, " + v.Reason
	case v.Verify == egress.VerifyMust:
		return "allowed by " + by + ", if the client shows that name"
	case v.Verify == egress.VerifyDeny:
		return "allowed by " + by + ", unless the client shows a name that is denied"
	}
	return "allowed by " + by
}
