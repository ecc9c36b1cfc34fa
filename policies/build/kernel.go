package build

import (
	"clove.run/clove/agent"
	"clove.run/clove/kernel/budget"
	"clove.run/clove/kernel/grant"
)

// readKernel reads what the run has of what agents share. The spec holds the texts in their
// canonical form.
func (b *builder) readKernel() error {
	k := agent.Kernel{Socket: b.asked.AgentSocket, OnDenial: b.asked.OnDenial, Namespace: b.asked.Namespace, ModelSetup: b.asked.ModelSetup, ModelLog: b.asked.ModelLog}
	for _, text := range b.asked.Grants {
		scope, err := grant.Parse(text)
		if err != nil {
			return mistake("grant", err)
		}
		k.Grants = append(k.Grants, scope.String())
	}
	for _, name := range b.asked.Models {
		scope, err := grant.Parse(string(grant.Model) + ":" + name)
		if err != nil {
			return mistake("model", err)
		}
		k.Grants = append(k.Grants, scope.String())
	}
	if k.ModelLog && !k.HasModels() {
		return invalid("model-log", "add --model NAME", "a run that may call no model has none to log")
	}
	for _, text := range b.asked.Budgets {
		limit, err := budget.ParseLimit(text)
		if err != nil {
			return mistake("budget", err)
		}
		k.Budgets = append(k.Budgets, limit.String())
	}
	if text := b.asked.AtEnd; text != "" {
		at, err := budget.ParseAtEnd(text)
		if err != nil {
			return mistake("at-end", err)
		}
		k.AtEnd = string(at)
	}
	if _, _, err := k.Denial(); err != nil {
		return mistake("on-denial", err)
	}
	k.OnWarn, k.OnEnd = b.asked.OnWarn, b.asked.OnEnd
	if err := agent.ValidateCallout("on-warn", k.OnWarn); err != nil {
		return mistake("on-warn", err)
	}
	if err := agent.ValidateCallout("on-end", k.OnEnd); err != nil {
		return mistake("on-end", err)
	}
	if err := agent.ValidateNamespace(k.Namespace); err != nil {
		return mistake("namespace", err)
	}
	b.spec.Kernel = k
	return nil
}

// checkModelSetup comes behind the files and the environment, which decide where the home is.
func (b *builder) checkModelSetup() error {
	if _, err := b.spec.ModelSetupFile(); err != nil {
		return mistake("model-setup", err)
	}
	return nil
}

// mistake is a mistake in a flag that another package found.
func mistake(flag string, err error) error {
	f := agent.FailureOf(err)
	return invalid(flag, f.Hint, "%s", f.Message)
}
