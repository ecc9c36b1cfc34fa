package methods

import "clove.run/clove/api"

// The methods of people and of supervisors about approvals.
var (
	ApprovalAsk = api.Row[api.ApprovalAskParams, api.ApprovalResult]{Name: "approval.ask", Access: api.AccessRoot, Tier: api.Experimental, Errors: []api.Code{api.CodeNotFound, api.CodeBusy, api.CodeDenied},
		Doc: "Asks people about a connection of a run that no rule covers, for the run's supervisor. An equal question of the run is asked once, and its answer holds for all."}

	ApprovalUse = api.Row[api.ApprovalUseParams, api.ApprovalResult]{Name: "approval.use", Access: api.AccessRoot, Tier: api.Experimental, Errors: []api.Code{api.CodeNotFound, api.CodeConflict},
		Doc: "Uses up a yes for one time, for the run's supervisor, before it does what was allowed. A second time it is refused."}

	ApprovalGet = api.Row[api.ApprovalGetParams, api.ApprovalResult]{Name: "approval.get", Access: api.AccessMember, Tier: api.Experimental, Errors: []api.Code{api.CodeNotFound, api.CodeConflict},
		Doc: "Returns a question of a run of the caller's, to root of all. With answered it comes when the question waits no more."}

	ApprovalList = api.Row[api.ApprovalListParams, api.ApprovalListResult]{Name: "approval.list", Access: api.AccessMember, Tier: api.Experimental,
		Doc: "Lists the questions of the caller's runs, to root all. If there are more, the answer has next, and the same request with that as after returns the following part."}

	ApprovalRespond = api.Row[api.ApprovalRespondParams, api.ApprovalResult]{Name: "approval.respond", Access: api.AccessOwner, Tier: api.Experimental, Errors: api.RunErrors,
		Doc: "Answers a question of a run of the caller's, or for root of any. The answer names the digest of what was seen, and holds for exactly that. A yes allows no more than the caller may allow by a rule."}
)
