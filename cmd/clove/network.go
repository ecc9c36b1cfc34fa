package main

import (
	"fmt"

	"clove.run/clove/agent"
	"clove.run/clove/egress"
	"clove.run/clove/policies/settings"
)

// explainNetwork prints the rules that a run would have. It compiles them as a run
// does, so what it prints is what holds.
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
