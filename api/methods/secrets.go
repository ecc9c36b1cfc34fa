package methods

import "clove.run/clove/api"

// The methods of secrets that programs use and never have.
var (
	SecretSet = api.Row[api.SecretSetParams, api.SecretResult]{Name: "secret.set", Access: api.AccessMember, Tier: api.Experimental, Errors: []api.Code{api.CodeConflict, api.CodeBusy, api.CodeDenied},
		Doc: "Keeps a secret of the caller's, encrypted, with the hosts and the requests that may carry it. No answer and no log has its value."}

	SecretRotate = api.Row[api.SecretRotateParams, api.SecretResult]{Name: "secret.rotate", Access: api.AccessMember, Tier: api.Experimental, Errors: []api.Code{api.CodeNotFound},
		Doc: "Gives a secret another value. Runs that use it have that with their next request."}

	SecretRemove = api.Row[api.SecretNameParams, api.Nothing]{Name: "secret.remove", Access: api.AccessMember, Tier: api.Experimental, Errors: []api.Code{api.CodeNotFound},
		Doc: "Forgets a secret. Runs that use it can do so no more."}

	SecretList = api.Row[api.SecretListParams, api.SecretListResult]{Name: "secret.list", Access: api.AccessMember, Tier: api.Experimental, Errors: []api.Code{api.CodeDenied},
		Doc: "Lists secrets without their values, with the last use of each."}

	SecretCheck = api.Row[api.Nothing, api.SecretCheckResult]{Name: "secret.check", Access: api.AccessMember, Tier: api.Experimental,
		Doc: "Says which secrets of the caller's cannot be used: whose value cannot be decrypted, that have expired, or whose uses are used up."}

	SecretUses = api.Row[api.SecretUsesParams, api.SecretUsesResult]{Name: "secret.uses", Access: api.AccessMember, Tier: api.Experimental, Errors: []api.Code{api.CodeNotFound},
		Doc: "Lists the requests that carried secrets of the caller's, newest first, at most 256 of each secret."}

	SecretUse = api.Row[api.SecretUseParams, api.SecretUseResult]{Name: "secret.use", Access: api.AccessRoot, Tier: api.Experimental, Errors: []api.Code{api.CodeNotFound, api.CodeDenied, api.CodeBudget},
		Doc: "A supervisor's: lets a request of a run carry a secret, and counts the use."}

	SecretOpen = api.Row[api.SecretOpenParams, api.SecretOpenResult]{Name: "secret.open", Shape: api.ShapeSession, Access: api.AccessRoot, Tier: api.Experimental, Errors: api.RunErrors,
		Doc: "A supervisor's: returns the secrets that its run was started with. cloved says `kernel.ready`, the supervisor passes the writing end of a pipe with one byte, and cloved writes the values to it, for the process that puts them into requests. The answer has none."}
)
