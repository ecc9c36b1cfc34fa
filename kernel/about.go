package kernel

import (
	"clove.run/clove/api"
	"clove.run/clove/api/agents"
	"clove.run/clove/kernel/budgets"
	"clove.run/clove/kernel/grants"
	"clove.run/clove/kernel/service"
)

// about is the service that says what a run is and has.
func (k *Kernel) about() *service.Service {
	return service.New("agent").On(service.Read(agents.AgentGet, service.Stages[api.RunParams]{}, k.get))
}

func (k *Kernel) get(c *service.Call, _ api.RunParams) (a api.AgentResult, out service.Outcome, err error) {
	all, err := k.grants.Shown(c)
	if err != nil {
		return a, out, err
	}
	lines, err := budgets.Lines(c.Tx, c.Run, c.Now)
	a = api.AgentResult{ID: c.Run.Spec.ID, Name: c.Run.Spec.Name, Owner: c.Run.Owner.UID, Namespace: c.Run.Spec.Kernel.Namespace,
		Parent: c.Run.Parent, State: c.Run.State, Grants: append([]api.Grant{}, all[:min(len(all), grants.InAnswer)]...), Budgets: lines.Budgets,
		Refused: k.engine.Refused(c.Run.Spec.ID)}
	return a, out, err
}
