package resolve

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"clove.run/clove/agent"
	"clove.run/clove/policies"
	"clove.run/clove/policies/host"
)

// Agent is a manifest that has a name: a user runs it by that.
type Agent struct {
	Name   string
	Source string // path of its file, or that it is shipped with clove
}

// Agents are those that this host has, in the order of their names: the caller's own, the host's, and those
// that are shipped with clove. The first of a name counts.
func Agents(h host.Host) (all []Agent) {
	for _, dir := range h.Agents {
		entries, _ := os.ReadDir(dir) // none if it cannot be read
		for _, e := range entries {
			name, is := strings.CutSuffix(e.Name(), policyEndings[0])
			if is && agent.ValidateName(name) == nil && !slices.ContainsFunc(all, func(a Agent) bool { return a.Name == name }) {
				all = append(all, Agent{name, filepath.Join(dir, e.Name())})
			}
		}
	}
	for _, name := range policies.Agents() {
		if !slices.ContainsFunc(all, func(a Agent) bool { return a.Name == name }) {
			all = append(all, Agent{name, builtIn})
		}
	}
	slices.SortFunc(all, func(a, b Agent) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// agentNamed finds the manifest of an agent's name: the path of its file, or its text if it is shipped
// with clove.
func agentNamed(word string, h host.Host) (path string, text []byte, found bool) {
	if agent.ValidateName(word) != nil {
		return "", nil, false
	}
	for _, dir := range h.Agents {
		if path := filepath.Join(dir, word+policyEndings[0]); host.Exists(path) {
			return path, nil, true
		}
	}
	text, found = policies.Agent(word)
	return word, text, found
}
