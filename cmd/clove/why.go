package main

import (
	"fmt"
	"slices"

	"github.com/urfave/cli/v2"

	"clove.run/clove/agent"
	"clove.run/clove/egress"
	"clove.run/clove/policies/resolve"
	"clove.run/clove/policies/settings"
)

// whyFlags are those that decide over a connection.
var whyFlags = []string{flagNetwork, settings.Allow, settings.Deny, settings.HostPort, flagPolicy}

// whyCommand takes no other flags of run.
func whyCommand() command {
	flags := slices.DeleteFunc(runFlags(), func(f cli.Flag) bool {
		return !slices.Contains(whyFlags, f.Names()[0])
	})
	return command{
		task: "look", runs: completeAll, usage: "explain how a run ended, or which rule decides over a host",
		verbs: []verb{{line: "clove why NAME|ID\nclove why run NAME|ID\nclove why [udp://]HOST[:PORT] [--network MODE] [--policy NAME|FILE] [--allow TARGET] [--deny TARGET]", act: by(explainWhy), free: true}},
		description: "Of a run: how it ended, which limit it reached, and for each refusal the flag and the line of a policy that would let it\n" +
			"pass, with the risk. A word is a run if one has that name or id, if it has no colon or bracket, if no flag is given, and\n" +
			"if it has no dot or is TEAM.AGENT; otherwise it is a host. clove why run NAME is always a run.\n\n" +
			"Of a host: which rule decides. Nothing is sent to any server: a name is assumed to resolve to a public address.\n" +
			"Exit status: 0 if it can be reached, else 1.",
		flags: append(flags, jsonFlag("write the run's explanation, or the steps, as JSON")),
	}
}

// explainWhy explains a run, or compiles the rules as a run does. It resolves and connects nothing.
func explainWhy(p program, c *cli.Context) error {
	run, found, err := lookedUp(p, c)
	switch {
	case err != nil:
		return err
	case found:
		return explainRun(p.screen, run, p.waits(c, run), p.lastLines(c, run))
	case c.NArg() != 1:
		return invalid("", "clove why HOST[:PORT] --allow TARGET, or clove why NAME", "it takes one target or run, not %d", c.NArg())
	}
	h, err := p.host()
	if err != nil {
		return err
	}
	spec, err := resolve.Network(requestOf(c), h)
	if err != nil {
		return err
	}
	rules, err := settings.Rules(spec)
	if err != nil {
		return err
	}
	steps, err := whySteps(rules, c.Args().First())
	if err != nil {
		return err
	}
	return printWhy(p.screen, c.Args().First(), spec, steps)
}

// whySteps reads the target and returns the decisions in their order.
func whySteps(rules *egress.Rules, target string) ([]egress.Finding, error) {
	to, err := resolve.ParseEndpoint(target)
	if err != nil {
		return nil, err
	}
	return rules.Why(to.Host, to.Port, to.Proto)
}

// printWhy prints the decisions. The exit status is the answer, for scripts.
func printWhy(s *screen, target string, spec agent.Spec, steps []egress.Finding) error {
	last := steps[len(steps)-1].Verdict
	if s.json {
		if err := s.printJSON(struct {
			Target  string           `json:"target"`
			Mode    string           `json:"mode"`
			Allowed bool             `json:"allowed"`
			Steps   []egress.Finding `json:"steps"`
		}{target, spec.Network, last.Allowed, steps}); err != nil {
			return err
		}
	} else {
		printSteps(s, target, spec, steps)
	}
	if !last.Allowed {
		return exitStatus(exitFailed)
	}
	return nil
}

// printSteps prints each question with its answer; the last answer decides.
func printSteps(s *screen, target string, spec agent.Spec, steps []egress.Finding) {
	for _, step := range steps {
		fmt.Fprintf(s.out, "%s: %s\n", printable(step.Question), verdictText(step.Verdict))
	}
	last := steps[len(steps)-1].Verdict
	if last.Allowed {
		fmt.Fprintf(s.out, "mode %s reaches %s\n", spec.Network, printable(target))
		return
	}
	fmt.Fprintf(s.out, "mode %s does not reach %s\n", spec.Network, printable(target))
	if last.Hint != "" {
		fmt.Fprintf(s.out, "hint: %s\n", printable(last.Hint))
	}
}

// verdictText is one decision as text, with the rule that made it.
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

// explainNetwork prints the rules that a run would have. It compiles them as a run
// does, so the printed rules are those in force.
func explainNetwork(s *screen, spec agent.Spec) error {
	rules, err := settings.Rules(spec)
	if err != nil {
		return err
	}
	explained := rules.Explain()
	if s.json {
		return s.printJSON(struct {
			Mode   string             `json:"mode"`
			Rules  []egress.Explained `json:"rules"`
			Egress agent.Egress       `json:"egress"`
		}{spec.Network, append([]egress.Explained{}, explained...), spec.Egress})
	}
	fmt.Fprintf(s.out, "mode %s: %s\n", spec.Network, modeMeanings[spec.Network])
	rows := [][]string{{"VERB", "TARGET", "OVER", "PORTS", "FROM", "NOTE"}}
	for _, e := range explained {
		verb := "allow"
		if e.Deny {
			verb = "deny"
		}
		rows = append(rows, []string{verb, e.Rule, e.Protos, e.Ports, e.Source, e.Note})
	}
	for _, published := range spec.Egress.Publish {
		// A published port is no rule, but the one way in.
		rows = append(rows, []string{"publish", published.Host.String(), "tcp", fmt.Sprint(published.Port), "--" + settings.Publish, "the host's clients reach the agent"})
	}
	if len(rows) == 1 {
		return nil
	}
	return printTable(s.out, rows)
}

// modeMeanings explains the modes of --network.
var modeMeanings = map[string]string{
	agent.NetworkNone:      "loopback and nothing else, no names",
	agent.NetworkAllowlist: "what the rules allow and nothing else; what is denied stays denied",
	agent.NetworkPublic:    "every TCP port of the internet, nothing private, and what the rules allow besides",
	agent.NetworkHost:      "the host's own network; no rule is enforced, and the record says so",
}
