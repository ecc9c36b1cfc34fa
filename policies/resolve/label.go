package resolve

import (
	"path/filepath"
	"slices"
	"strings"

	"clove.run/clove/agent"
	"clove.run/clove/policies/host"
	"clove.run/clove/policies/settings"
)

// Label is the policy as which a caller's spec is recorded: the level, or the document of the
// host in dir, that the spec names, where the spec allows no more than that. Else it is
// agent.PolicyCustom, beside the name that the caller gave. The digest is of what was found
// here, never the caller's.
func Label(spec agent.Spec, dir string) (agent.Policy, error) {
	if p := &spec.Policy; p.Name == agent.PolicyCustom && p.Claimed != "" {
		p.Name = p.Claimed // the run has changed since
	}
	custom := agent.Policy{Name: agent.PolicyCustom, Claimed: spec.Policy.Name}
	// Only names: a path would be read with the rights of this process.
	if name := spec.Policy.Name; name == "" || name == ceilingName || strings.Contains(name, "/") || slices.Contains(policyEndings, filepath.Ext(name)) {
		return custom, nil
	}
	h, err := host.Current()
	if err != nil {
		return custom, err
	}
	h.Policies = []string{dir}
	// One that is not there, or broken, is none that the spec could keep to.
	policy, err := LoadPolicy(spec.Policy.Name, h)
	if err != nil || len(settings.Wider(policy.Spec, spec)) > 0 {
		return custom, nil
	}
	return policy.Spec.Policy, nil
}
