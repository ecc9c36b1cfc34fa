package resolve

import (
	"maps"
	"slices"

	"clove.run/clove/agent"
	"clove.run/clove/policies"
	"clove.run/clove/policies/settings"
)

// shadowSteps read what decides in a shadow: a policy's document below what was asked for.
var shadowSteps = slices.Concat([]func(*builder) error{(*builder).readPolicy}, policySteps, []func(*builder) error{(*builder).showHomeDirs})

// readShadow builds what the run would be under the policy of the shadow with the same flags. It
// comes behind the files and the command, which it shares.
func (b *builder) readShadow() error {
	if b.typed.PolicyShadow == "" {
		return nil
	}
	asked := b.typed
	asked.Policy, asked.PolicyShadow = asked.PolicyShadow, ""
	// These decide nothing, and another policy may have no use for them.
	asked.Values = maps.Clone(asked.Values)
	for _, name := range []string{settings.ModelSetup, settings.ModelLog, settings.OnWarn, settings.OnEnd, settings.OnAsk, settings.OnAskKey, settings.Namespace, settings.DNS} {
		delete(asked.Values, name)
	}
	other := &builder{asked: asked, typed: asked, host: b.host, spec: policies.Standard()}
	other.spec.ID = b.spec.ID
	spec, err := other.build(shadowSteps)
	if err != nil {
		f := agent.FailureOf(err)
		message := f.Message
		if f.Step != "" && f.Step != "--policy" {
			message = f.Step + ": " + message
		}
		return &agent.Error{Kind: agent.KindOf(err), Step: "--policy-shadow", Message: message, Hint: f.Hint}
	}
	if spec.Gated() {
		spec.Egress.DNS = b.spec.Egress.DNS
	}
	spec.Files.Workspace, spec.Files.Prefixes = b.spec.Files.Workspace, b.spec.Files.Prefixes
	b.spec.Shadow = agent.ShadowOf(spec)
	return nil
}
