package methods

import "clove.run/clove/api"

// The methods of users about mail.
var (
	MailBoxes = api.Row[api.MailBoxesParams, api.MailBoxesResult]{Name: "mail.boxes", Access: api.AccessMember, Tier: api.Experimental,
		Doc: "Lists the mailboxes of the caller's runs and names, to root all. A run has one from the first message to it on. If there are more, the answer has next, and the same request with that as after returns the following part."}

	MailRead = api.Row[api.MailReadParams, api.MailReadResult]{Name: "mail.read", Access: api.AccessMember, Tier: api.Experimental, Errors: []api.Code{api.CodeNotFound, api.CodeConflict},
		Doc: "Returns the messages of a mailbox that its receiver has not acknowledged, and takes none out. If there are more, the answer has next, and the same request with that as after returns the following part."}

	MailPost = api.Row[api.MailPostParams, api.MailSendResult]{Name: "mail.post", Access: api.AccessMember, Tier: api.Experimental, Errors: []api.Code{api.CodeNotFound, api.CodeBusy, api.CodeConflict},
		Doc: "Sends a message to a run or a name of the caller's, or for root of a user's. Its sender is the user, as uid:NUMBER."}

	MailDead = api.Row[api.MailDeadParams, api.MailDeadResult]{Name: "mail.dead", Access: api.AccessMember, Tier: api.Experimental, Errors: []api.Code{api.CodeNotFound, api.CodeConflict},
		Doc: "Lists messages that have expired or that their receivers have rejected. If there are more, the answer has next, and the same request with that as after returns the following part."}

	MailRequeue = api.Row[api.MailLetterParams, api.Nothing]{Name: "mail.requeue", Access: api.AccessMember, Tier: api.Experimental, Errors: []api.Code{api.CodeNotFound, api.CodeBusy},
		Doc: "Puts a dead letter back into its mailbox, at its place. It does not expire again."}

	MailDiscard = api.Row[api.MailLetterParams, api.Nothing]{Name: "mail.discard", Access: api.AccessMember, Tier: api.Experimental, Errors: []api.Code{api.CodeNotFound},
		Doc: "Removes a dead letter."}
)
