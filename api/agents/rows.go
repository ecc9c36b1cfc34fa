package agents

import (
	"sync"

	"clove.run/clove/api"
)

// The methods that an agent calls over its own socket, and names no run: it is the run.
var (
	AgentGet = api.Row[api.RunParams, api.AgentResult]{Name: "agent.get", Access: api.AccessAgent, Tier: api.Experimental, Errors: api.RunErrors,
		Doc: "Returns what a run is, what it may do, what it may spend, and how many of its calls were refused."}

	AgentListen = api.Row[api.Nothing, api.Nothing]{Name: "agent.listen", Access: api.AccessSelf, Tier: api.Experimental,
		Doc: "Sends the agent's notifications on this connection from now on: those that waited first. 256 wait at most; then the oldest go, and agent.lost says how many."}

	AgentReady = api.Row[api.Nothing, api.Nothing]{Name: "agent.ready", Access: api.AccessSelf, Tier: api.Experimental,
		Doc: "Says that the agent is ready, for runs that come after it with the condition ready. It holds until the agent ends. A repetition changes nothing."}

	GrantList = api.Row[api.GrantListParams, api.GrantListResult]{Name: "grant.list", Access: api.AccessAgent, Tier: api.Experimental, Errors: api.RunErrors,
		Doc: "Lists what a run may do: the rules of its network that allow something, and its grants, oldest first. If there are more, the answer has next, and the same request with that as after returns the following part."}

	GrantDerive = api.Row[api.GrantDeriveParams, api.GrantResult]{Name: "grant.derive", Access: api.AccessAgent, Tier: api.Experimental, Errors: api.RunErrors,
		Doc: "Makes a narrower grant from one that the run holds."}

	GrantRevoke = api.Row[api.GrantRevokeParams, api.GrantRevokeResult]{Name: "grant.revoke", Access: api.AccessAgent, Tier: api.Experimental, Errors: api.RunErrors,
		Doc: "Takes a grant back, with all that was derived from it. An agent may revoke only what it derived itself."}

	GrantCheck = api.Row[api.GrantCheckParams, api.GrantCheckResult]{Name: "grant.check", Access: api.AccessAgent, Tier: api.Experimental, Errors: api.RunErrors,
		Doc: "Says whether a run may do one thing, and why; of the network what its gate would decide, by its rules and its grants. Nothing is used up."}

	BudgetGet = api.Row[api.RunParams, api.BudgetResult]{Name: "budget.get", Access: api.AccessAgent, Tier: api.Experimental, Errors: api.RunErrors,
		Doc: "Returns every budget that the run spends from."}

	BudgetReserve = api.Row[api.BudgetReserveParams, api.BudgetReserveResult]{Name: "budget.reserve", Access: api.AccessAgent, Tier: api.Experimental, Errors: []api.Code{api.CodeBudget, api.CodeNotFound, api.CodeConflict},
		Doc: "Sets amounts of own dimensions aside, all or none."}

	BudgetSettle = api.Row[api.BudgetSettleParams, api.BudgetResult]{Name: "budget.settle", Access: api.AccessAgent, Tier: api.Experimental, Errors: api.RunErrors,
		Doc: "Says what was used of a reservation; the rest is free again. More than was reserved counts as with budget.charge."}

	BudgetRelease = api.Row[api.BudgetReleaseParams, api.BudgetResult]{Name: "budget.release", Access: api.AccessAgent, Tier: api.Experimental, Errors: api.RunErrors,
		Doc: "Frees a reservation of which nothing was used."}

	BudgetCharge = api.Row[api.BudgetChargeParams, api.BudgetResult]{Name: "budget.charge", Access: api.AccessAgent, Tier: api.Experimental, Errors: api.RunErrors,
		Doc: "Records what was used of own dimensions. It may exceed the run's own limit, because it has happened; then at_end is done. In accounts above the run it counts at most what is left of that limit and there; a run without a limit of its own is refused what is not left there, and every run where nothing is."}

	ModelQueue = api.Row[api.RunParams, api.ModelQueueResult]{Name: "model.queue", Access: api.AccessAgent, Tier: api.Experimental, Errors: api.RunErrors,
		Doc: "Returns the run's calls of models that wait for their turn: the position of each, and how long it is expected to wait."}

	AuditRead = api.Row[api.AuditReadParams, api.AuditReadResult]{Name: "audit.read", Access: api.AccessAgent, Tier: api.Experimental, Errors: api.RunErrors,
		Doc: "Returns records of the audit log about a namespace of the run's owner. An agent needs a grant of kind audit that covers it. If there is more, the answer has next, and the same request with that as after returns the following part, which may be empty."}
)

// table is made when it is asked for: a start of clove does not pay for it.
var table = sync.OnceValue(func() api.Table {
	return api.Table{
		AgentGet.Method(),
		AgentListen.Method(),
		AgentReady.Method(),
		GrantList.Method(),
		GrantDerive.Method(),
		GrantRevoke.Method(),
		GrantCheck.Method(),
		BudgetGet.Method(),
		BudgetReserve.Method(),
		BudgetSettle.Method(),
		BudgetRelease.Method(),
		BudgetCharge.Method(),
		ModelQueue.Method(),
		AuditRead.Method(),
	}
})

// All returns the rows, in the order of the documents. It is the package's own list: callers change nothing in it.
func All() api.Table { return table() }

// Find returns the row of a method.
func Find(name string) (api.Method, bool) { return table().Find(name) }
