package main

import "clove.run/clove/agent"

// reportDenied prints one line when a target is refused for the first time, so that the
// user can allow it in the next run.
func (p launcher) reportDenied(d agent.Denial, reason, hint string) {
	line := deniedWords[d.Kind] + ": refused " + d.Target
	if d.Program != "" {
		line += " by " + d.Program
	}
	if reason != "" {
		line += ": " + reason
	}
	if hint != "" {
		line += " (" + hint + ")"
	}
	p.say("clove", cyan, printable(line))
}

// deniedWords are the kinds of denials for people.
var deniedWords = map[string]string{agent.DenialNetwork: "network", agent.DenialCall: "system call", agent.DenialFile: "file",
	agent.DenialExec: "program", agent.DenialCapability: "privilege"}
