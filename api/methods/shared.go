package methods

import "clove.run/clove/api"

// The methods of users about what agents share.
var (
	GrantGive = api.Row[api.GrantGiveParams, api.GrantResult]{Name: "grant.give", Access: api.AccessOwner, Tier: api.Experimental, Errors: api.RunErrors,
		Doc: "Gives a run a grant. A net grant acts at once on a run that has an agent socket."}

	BudgetRaise = api.Row[api.BudgetRaiseParams, api.BudgetResult]{Name: "budget.raise", Access: api.AccessOwner, Tier: api.Experimental, Errors: api.RunErrors,
		Doc: "Adds to what is granted to a run. A run that was paused for it goes on."}

	BudgetReset = api.Row[api.BudgetResetParams, api.BudgetResult]{Name: "budget.reset", Access: api.AccessOwner, Tier: api.Experimental, Errors: api.RunErrors,
		Doc: "Sets what a run has used of dimensions back to zero."}

	ManifestAdd = api.Row[api.ManifestAddParams, api.ManifestResult]{Name: "manifest.add", Access: api.AccessMember, Tier: api.Experimental, Errors: []api.Code{api.CodeConflict, api.CodeUnenforceable},
		Doc: "Keeps a manifest of the caller's, which agents with a spawn grant of its name may start. Grants that were given before hold what the name meant then."}

	ManifestList = api.Row[api.ManifestListParams, api.ManifestListResult]{Name: "manifest.list", Access: api.AccessMember, Tier: api.Experimental,
		Doc: "Lists the manifests that the caller has added, also those that newer ones of the same name have replaced. If there are more, the answer has next, and the same request with that as after returns the following part."}

	ManifestRemove = api.Row[api.ManifestNameParams, api.ManifestRemoveResult]{Name: "manifest.remove", Access: api.AccessMember, Tier: api.Experimental, Errors: []api.Code{api.CodeNotFound},
		Doc: "Forgets a manifest with those that it has replaced. Agents start nothing of it from now on; runs of it go on."}

	BudgetSet = api.Row[api.BudgetSetParams, api.BudgetResult]{Name: "budget.set", Access: api.AccessMember, Tier: api.Experimental,
		Doc: "Sets what all runs of a user, of a namespace or with a name may spend together, or with reset what they have used back to zero. Root sets the budget of a user, and a user those below it; only root changes or resets a limit that another user set."}

	BudgetList = api.Row[api.BudgetListParams, api.BudgetListResult]{Name: "budget.list", Access: api.AccessMember, Tier: api.Experimental, Errors: []api.Code{api.CodeNotFound},
		Doc: "Lists what accounts may spend and have spent, with all accounts below them. If there are more, the answer has next, and the same request with that as after returns the following part."}

	BudgetReport = api.Row[api.BudgetReportParams, api.BudgetReportResult]{Name: "budget.report", Access: api.AccessMember, Tier: api.Experimental,
		Doc: "Returns what users' runs spent by day and dimension, for the last 400 days on which something was spent; of everybody's for root, of one's own for others. If there is more, the answer has next, and the same request with that as after returns the following part."}

	BudgetTop = api.Row[api.BudgetTopParams, api.BudgetTopResult]{Name: "budget.top", Access: api.AccessMember, Tier: api.Experimental,
		Doc: "Returns which runs spent most of each dimension in the last minute; of everybody's for root, of one's own for others."}

	StateQuery = api.Row[api.StateQueryParams, api.StateListResult]{Name: "state.query", Access: api.AccessMember, Tier: api.Experimental,
		Doc: "Lists the keys that agents share in a scope of the caller's, at a path and below it, without their values. If there are more, the answer has next, and the same request with that as after returns the following part."}

	StateRead = api.Row[api.StateReadParams, api.StateResult]{Name: "state.read", Access: api.AccessMember, Tier: api.Experimental,
		Doc: "Returns a key that agents share, with its value and its version, which is 0 where there is none."}

	StateWrite = api.Row[api.StateWriteParams, api.StateSetResult]{Name: "state.write", Access: api.AccessMember, Tier: api.Experimental, Errors: []api.Code{api.CodeConflict},
		Doc: "Sets a key that agents share, as state.set."}

	StateRemove = api.Row[api.StateRemoveParams, api.StateDeleteResult]{Name: "state.remove", Access: api.AccessMember, Tier: api.Experimental, Errors: []api.Code{api.CodeConflict},
		Doc: "Removes a key that agents share, as state.delete."}

	AuditQuery = api.Row[api.AuditQueryParams, api.AuditQueryResult]{Name: "audit.query", Shape: api.ShapeStream, Access: api.AccessMember, Tier: api.Experimental, Notes: api.NoteAuditRecord,
		Doc: "Returns records of the audit log, as audit.record notifications: those about the caller's runs and namespaces, to root all. Nothing is verified: root does that with clove audit verify."}

	AuditTrace = api.Row[api.TraceParams, api.TraceResult]{Name: "audit.trace", Access: api.AccessMember, Tier: api.Experimental, Errors: []api.Code{api.CodeNotFound},
		Doc: "Returns from what an event, a call, a message or a run follows, step by step over agents up to what began it, or with down what follows from it: by the audit log, of which the newest GiB is searched. A member sees its own runs and calls."}

	EventFollow = api.Row[api.EventParams, api.EventResult]{Name: "event.follow", Shape: api.ShapeStream, Access: api.AccessMember, Tier: api.Stable, Notes: api.NoteEvent,
		Doc: "Returns what happened to runs, numbered, as event.happened notifications. Continue from the number of the last one, also after a restart of cloved."}
)
