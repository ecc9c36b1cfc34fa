package kernel

import (
	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/agents"
	"clove.run/clove/audit"
	"clove.run/clove/kernel/budgets"
	"clove.run/clove/kernel/grants"
	"clove.run/clove/kernel/service"
)

// about is the service that says what a run is and has. ready notes that a run is ready.
func (k *Kernel) about(ready func(agent.ID) error) *service.Service {
	return service.New("agent").On(
		service.Read(agents.AgentGet, service.Stages[api.RunParams]{}, k.get),
		// It changes nothing in the engine's store: the run is in another.
		service.Read(agents.AgentReady, service.Stages[api.Nothing]{}, func(c *service.Call, _ api.Nothing) (none api.Nothing, out service.Outcome, err error) {
			if !c.Run.Queue.Ready.IsZero() || ready == nil {
				return none, out, nil
			}
			out.Verdict = audit.VerdictAllow
			return none, out, ready(c.Run.Spec.ID)
		}))
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
