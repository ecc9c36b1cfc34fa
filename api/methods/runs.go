package methods

import "clove.run/clove/api"

// The methods that make, show and remove runs.
var (
	RunStart = api.Row[api.StartParams, api.RunResult]{Name: "run.start", Access: api.AccessMember, Tier: api.Stable, Errors: []api.Code{api.CodeConflict, api.CodeUnenforceable}, Audit: api.AuditAdmin,
		Doc: "Stores a run and starts it as the queue allows. The answer comes when the agent executes, or at once with state queued and the reason if it has to wait for more than other starts."}

	RunList = api.Row[api.ListParams, api.ListResult]{Name: "run.list", Access: api.AccessMember, Tier: api.Stable,
		Doc: "Lists the caller's runs, newest first, without their environment; root sees all. An answer has a part of them: if there are more it has next, and the same request with that as after returns the following part."}

	RunGet = api.Row[api.RunParams, api.RunResult]{Name: "run.get", Access: api.AccessOwner, Tier: api.Stable, Errors: []api.Code{api.CodeNotFound},
		Doc: "Returns everything that is known of one run. Values of the environment that look like secrets are redacted, here and in every answer with a run."}

	RunWait = api.Row[api.RunParams, api.WaitResult]{Name: "run.wait", Access: api.AccessOwner, Tier: api.Stable, Errors: []api.Code{api.CodeNotFound},
		Doc: "Answers with the record when the run has ended and no policy starts it again."}

	RunRemove = api.Row[api.RemoveParams, api.Nothing]{Name: "run.remove", Access: api.AccessOwner, Tier: api.Stable, Errors: api.RunErrors, Audit: api.AuditAdmin,
		Doc: "Removes a run that has ended or waits: record, layer, log and name. With force, a live run is killed first."}

	RunRename = api.Row[api.RenameParams, api.RunResult]{Name: "run.rename", Access: api.AccessOwner, Tier: api.Stable, Errors: api.RunErrors, Audit: api.AuditAdmin,
		Doc: "Renames a run that does not execute."}

	RunPrune = api.Row[api.Nothing, api.PruneResult]{Name: "run.prune", Access: api.AccessMember, Tier: api.Stable, Audit: api.AuditAdmin,
		Doc: "Removes the caller's ended runs; for root, all ended runs."}
)
