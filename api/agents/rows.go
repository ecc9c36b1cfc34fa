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

	AgentHandoff = api.Row[api.HandoffParams, api.HandoffResult]{Name: "agent.handoff", Access: api.AccessSelf, Tier: api.Experimental, Errors: []api.Code{api.CodeBudget, api.CodeNotFound, api.CodeConflict},
		Doc: "Gives another run a task, with parts of grants and a reservation, which the agent then has no more. A run below this one has them at once. One of the same user and namespace, for which the agent has a grant of kind send, has them when it accepts. Either gets the task with agent.accept."}

	AgentAccept = api.Row[api.AcceptParams, api.AcceptResult]{Name: "agent.accept", Access: api.AccessSelf, Tier: api.Experimental, Errors: []api.Code{api.CodeBudget, api.CodeNotFound, api.CodeConflict},
		Doc: "Accepts a task that another run has offered to this one, with what goes with it. Each offer is accepted once."}

	AgentWithdraw = api.Row[api.WithdrawParams, api.Nothing]{Name: "agent.withdraw", Access: api.AccessSelf, Tier: api.Experimental, Errors: []api.Code{api.CodeNotFound, api.CodeConflict},
		Doc: "Takes back an offer that the run has made and that is not accepted yet. Where what goes with it is the other run's already, which is below this one, the answer is the error conflict."}

	AgentOffers = api.Row[api.OfferListParams, api.OfferListResult]{Name: "agent.offers", Access: api.AccessSelf, Tier: api.Experimental, Waits: true,
		Doc: "Lists the tasks that were offered to the run and are not accepted, in parts of at most 8. With wait the answer comes when there is one."}

	AgentSpawn = api.Row[api.SpawnParams, api.SpawnResult]{Name: "agent.spawn", Access: api.AccessSelf, Tier: api.Experimental, Errors: []api.Code{api.CodeNotFound, api.CodeConflict, api.CodeBudget, api.CodeUnenforceable},
		Doc: "Starts a child from a manifest that a spawn grant of the agent's holds, narrower by what the parameters name, and in nothing with more than the agent itself has. The notification agent.ended reports its end. It needs cloved."}

	AgentWait = api.Row[api.ChildParams, api.ChildEnd]{Name: "agent.wait", Access: api.AccessSelf, Tier: api.Experimental, Errors: api.RunErrors, Waits: true,
		Doc: "Returns how a descendant ended, with the end of its output and its result, when it has. The call waits also while cloved is away."}

	AgentSignal = api.Row[api.ChildSignalParams, api.Nothing]{Name: "agent.signal", Access: api.AccessSelf, Tier: api.Experimental, Errors: api.RunErrors,
		Doc: "Sends a descendant a signal, or ends it with status policy-kill or budget."}

	AgentList = api.Row[api.ChildListParams, api.ChildListResult]{Name: "agent.list", Access: api.AccessAgent, Tier: api.Experimental, Errors: api.RunErrors,
		Doc: "Lists the children of a run, with those that have ended. If there are more, the answer has next, and the same request with that as after returns the following part."}

	AgentTree = api.Row[api.ChildListParams, api.ChildListResult]{Name: "agent.tree", Access: api.AccessAgent, Tier: api.Experimental, Errors: api.RunErrors,
		Doc: "Lists all runs below a run, each behind its parent. It continues as agent.list."}

	AgentResult = api.Row[api.ResultParams, api.Nothing]{Name: "agent.result", Access: api.AccessSelf, Tier: api.Experimental, Errors: []api.Code{api.CodeConflict},
		Doc: "Gives the result of the run to what started it, once: agent.wait returns it."}

	AgentCollect = api.Row[api.CollectParams, api.CollectResult]{Name: "agent.collect", Access: api.AccessSelf, Tier: api.Experimental, Errors: api.RunErrors,
		Doc: "Copies what a run below the caller's has changed in its files to a path of the caller's, with the caller's rights: a live run, which is frozen while it is read, or one that has ended and whose layer is kept. Below the path the files have the paths that they had inside. At the path must be nothing, or an empty folder, and what is copied appears as a whole. Deletions, devices, pipes, sockets and what the run itself may not read are left out, and named in the answer."}

	AgentApply = api.Row[api.OwnApplyParams, api.OwnApplyResult]{Name: "agent.apply", Access: api.AccessSelf, Tier: api.Experimental, Errors: api.RunErrors,
		Doc: "Asks people to write the run's changes back to its workspace on the host, and waits for them; the run was started with --ask apply. They are written as run.apply does, with the rights of the run's owner, if they are still exactly what people saw. What a program of the host's executes by itself, and what the next agent follows, is left out. It needs cloved."}

	AgentFetch = api.Row[api.FetchParams, api.Nothing]{Name: "agent.fetch", Access: api.AccessSelf, Tier: api.Experimental, Errors: api.RunErrors,
		Doc: "Copies a file or folder that a live run of the namespace keeps with its home to a path of the caller's: it is read with that run's rights through its own mount, and written with the caller's. It needs a grant file:RUN:FOLDER, as file:noter:/memory. Below the path the files have the paths that they had inside. At the path must be nothing, or an empty folder, and what is copied appears as a whole, or nothing where something of it cannot be copied, as a pipe."}

	ToolList = api.Row[api.ToolListParams, api.ToolListResult]{Name: "tool.list", Access: api.AccessAgent, Tier: api.Experimental, Errors: api.RunErrors,
		Doc: "Lists the tools that a run's grants cover, with the schemas of their arguments. If there are more, the answer has next, and the same request with that as after returns the following part."}

	ToolCall = api.Row[api.ToolCallParams, api.ToolCallResult]{Name: "tool.call", Access: api.AccessAgent, Tier: api.Experimental, Errors: []api.Code{api.CodeBudget, api.CodeNotFound, api.CodeConflict, api.CodeBusy},
		Doc: "Calls a tool that a grant tool:NAME covers, and returns what it gave when it has ended. It counts as one of the budget's tool_calls. In a run with --ask tool it waits for people's yes first, unless the tool changes nothing. The end of the call, as by cancel, ends the tool with all that it has started. Of two calls with one key the second is refused: the answer of the first is not kept."}

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

	MailSend = api.Row[api.MailSendParams, api.MailSendResult]{Name: "mail.send", Access: api.AccessSelf, Tier: api.Experimental, Errors: []api.Code{api.CodeNotFound, api.CodeBusy, api.CodeBudget, api.CodeConflict},
		Doc: "Sends a message, which is durable when the call is answered. It needs a grant of kind send that covers the receiver. A full mailbox refuses it. With wake it starts a run for a reserved name that has a manifest and that no run holds."}

	MailReceive = api.Row[api.MailReceiveParams, api.MailReceiveResult]{Name: "mail.receive", Access: api.AccessSelf, Tier: api.Experimental, Waits: true,
		Doc: "Returns messages of the agent's mailbox when there are some: those of a higher priority first, of one sender in the order in which it sent them. They come again until they are acknowledged."}

	MailAck = api.Row[api.MailAckParams, api.MailAckResult]{Name: "mail.ack", Access: api.AccessSelf, Tier: api.Experimental, Errors: []api.Code{api.CodeNotFound, api.CodeBudget, api.CodeBusy, api.CodeConflict},
		Doc: "Takes messages out of the agent's mailbox, all or none; with reject they become dead letters. The calls in then are done with that in one transaction: where one is refused, nothing has happened."}

	MailReply = api.Row[api.MailReplyParams, api.MailSendResult]{Name: "mail.reply", Access: api.AccessSelf, Tier: api.Experimental, Errors: []api.Code{api.CodeNotFound, api.CodeBusy},
		Doc: "Answers a message that asks, once. It needs no grant."}

	MailAnswer = api.Row[api.MailAnswerParams, api.MailAnswerResult]{Name: "mail.answer", Access: api.AccessSelf, Tier: api.Experimental, Errors: []api.Code{api.CodeNotFound}, Waits: true,
		Doc: "Returns the answer to a message that the agent sent with asks, when it has come."}

	MailSubscribe = api.Row[api.MailTopicParams, api.Nothing]{Name: "mail.subscribe", Access: api.AccessSelf, Tier: api.Experimental, Errors: []api.Code{api.CodeBusy},
		Doc: "Has the run get a copy of each message to the topic T of its namespace, until it ends. It needs a grant of kind name that covers topic/T."}

	MailUnsubscribe = api.Row[api.MailTopicParams, api.Nothing]{Name: "mail.unsubscribe", Access: api.AccessSelf, Tier: api.Experimental, Errors: []api.Code{api.CodeNotFound},
		Doc: "Ends a subscription of the run. What has come stays."}

	MailPublish = api.Row[api.MailPublishParams, api.MailPublishResult]{Name: "mail.publish", Access: api.AccessSelf, Tier: api.Experimental, Errors: []api.Code{api.CodeBusy, api.CodeBudget},
		Doc: "Sends a message to each run that has subscribed to the topic T, and says how many have it and how many mailboxes were full. It needs a grant of kind send that covers topic/T, and costs one message."}

	NameRegister = api.Row[api.NameRegisterParams, api.NameResult]{Name: "name.register", Access: api.AccessSelf, Tier: api.Experimental, Errors: []api.Code{api.CodeBusy},
		Doc: "Gives the run a name in its namespace until it ends, or other tags for one that it has. It needs a grant of kind name that covers it. Runs that hold the same name take turns."}

	NameRelease = api.Row[api.NameParams, api.Nothing]{Name: "name.release", Access: api.AccessSelf, Tier: api.Experimental, Errors: []api.Code{api.CodeNotFound},
		Doc: "Takes a name from the run."}

	NameLookup = api.Row[api.NameLookupParams, api.NameResult]{Name: "name.lookup", Access: api.AccessSelf, Tier: api.Experimental, Errors: []api.Code{api.CodeNotFound},
		Doc: "Returns a name of the run's namespace, with the runs that hold it."}

	NameList = api.Row[api.NameListParams, api.NameListResult]{Name: "name.list", Access: api.AccessSelf, Tier: api.Experimental,
		Doc: "Lists the names of the run's namespace. If there are more, the answer has next, and the same request with that as after returns the following part."}

	ApprovalOwn = api.Row[api.ApprovalOwnParams, api.ApprovalListResult]{Name: "approval.own", Access: api.AccessSelf, Tier: api.Experimental,
		Doc: "Lists the questions to people that the run has, and their answers. If there are more, the answer has next, and the same request with that as after returns the following part."}

	ApprovalCancel = api.Row[api.ApprovalCancelParams, api.Nothing]{Name: "approval.cancel", Access: api.AccessSelf, Tier: api.Experimental, Errors: []api.Code{api.CodeNotFound, api.CodeConflict},
		Doc: "Takes back a question of the run that waits. What asked is refused."}

	StateGet = api.Row[api.StateGetParams, api.StateResult]{Name: "state.get", Access: api.AccessSelf, Tier: api.Experimental, Errors: []api.Code{api.CodeConflict},
		Doc: "Returns a key with its value and its version, which is 0 where there is none. Keys of the scopes name and namespace, which other runs share, need a grant of kind state, such as state:/namespace/plans:ro, for all of these methods."}

	StateSet = api.Row[api.StateSetParams, api.StateSetResult]{Name: "state.set", Access: api.AccessSelf, Tier: api.Experimental, Errors: []api.Code{api.CodeConflict, api.CodeBusy},
		Doc: "Sets a key, which is durable when the call is answered. With if_version only if the key has that version, else the answer is the error conflict."}

	StateDelete = api.Row[api.StateDeleteParams, api.StateDeleteResult]{Name: "state.delete", Access: api.AccessSelf, Tier: api.Experimental, Errors: []api.Code{api.CodeConflict},
		Doc: "Removes a key, with if_version as state.set."}

	StateList = api.Row[api.StateListParams, api.StateListResult]{Name: "state.list", Access: api.AccessSelf, Tier: api.Experimental, Errors: []api.Code{api.CodeConflict},
		Doc: "Lists the key at a path and those below it, without their values. If there are more, the answer has next, and the same request with that as after returns the following part."}

	StateWatch = api.Row[api.StateWatchParams, api.StateResult]{Name: "state.watch", Access: api.AccessSelf, Tier: api.Experimental, Errors: []api.Code{api.CodeConflict}, Waits: true,
		Doc: "Returns a key when its version is above the given one, or when it is gone and the given one is above 0. That a key expires does not wake a call that waits: the caller bounds the wait with within_ms, and asks again."}

	JobAdd = api.Row[api.JobAddParams, api.JobResult]{Name: "job.add", Access: api.AccessSelf, Tier: api.Experimental, Errors: []api.Code{api.CodeNotFound, api.CodeBusy, api.CodeBudget},
		Doc: "Adds a job to a queue of the run's namespace, which is durable when the call is answered. It needs a grant of kind send that covers job/QUEUE, and costs one message. A full queue refuses it."}

	JobClaim = api.Row[api.JobClaimParams, api.JobResult]{Name: "job.claim", Access: api.AccessSelf, Tier: api.Experimental, Errors: []api.Code{api.CodeNotFound, api.CodeBusy}, Waits: true,
		Doc: "Takes the next job of a queue of the run's namespace when there is one: of a higher priority first, and else in the order in which they were added. The run holds it until it completes or fails it, ends, or its lease runs out. It needs a grant of kind name that covers job/QUEUE. With a key, a repetition returns the same job."}

	JobRenew = api.Row[api.JobParams, api.JobResult]{Name: "job.renew", Access: api.AccessSelf, Tier: api.Experimental, Errors: []api.Code{api.CodeNotFound},
		Doc: "Begins the lease of a job that the run holds anew."}

	JobComplete = api.Row[api.JobCompleteParams, api.JobCompleteResult]{Name: "job.complete", Access: api.AccessSelf, Tier: api.Experimental, Errors: []api.Code{api.CodeNotFound, api.CodeBudget, api.CodeBusy, api.CodeConflict},
		Doc: "Ends a job that the run holds: it is done. The calls in then are done with that in one transaction: where one is refused, nothing has happened."}

	JobFail = api.Row[api.JobFailParams, api.JobResult]{Name: "job.fail", Access: api.AccessSelf, Tier: api.Experimental, Errors: []api.Code{api.CodeNotFound},
		Doc: "Gives a job that the run holds back: it is tried again after a pause, or it is dead."}

	JobGet = api.Row[api.JobGetParams, api.JobResult]{Name: "job.get", Access: api.AccessSelf, Tier: api.Experimental, Errors: []api.Code{api.CodeNotFound},
		Doc: "Returns a job that the run holds, or that it has added."}

	QueueOpen = api.Row[api.QueueOpenParams, api.QueueResult]{Name: "queue.open", Access: api.AccessSelf, Tier: api.Experimental, Errors: []api.Code{api.CodeNotFound, api.CodeBusy, api.CodeConflict},
		Doc: "Makes a queue of the run's namespace, or replaces the settings of one that the run has made. It needs a grant of kind name that covers job/QUEUE, and with a manifest one of kind spawn that covers that. What is started for its jobs are children of the run, and held against it as those of agent.spawn. When the run ends nothing is started any more, and an empty queue goes."}

	QueueClose = api.Row[api.QueueCloseParams, api.Nothing]{Name: "queue.close", Access: api.AccessSelf, Tier: api.Experimental, Errors: []api.Code{api.CodeNotFound, api.CodeConflict},
		Doc: "Removes a queue that the run has made and that has no jobs to be done and no dead ones."}

	JobList = api.Row[api.JobListParams, api.JobListResult]{Name: "job.list", Access: api.AccessSelf, Tier: api.Experimental,
		Doc: "Lists the jobs that the run holds, without their bodies."}
	BlobOpen = api.Row[api.BlobOpenParams, api.BlobOpenResult]{Name: "blob.open", Access: api.AccessSelf, Tier: api.Experimental, Errors: []api.Code{api.CodeTooLarge, api.CodeBusy, api.CodeBudget, api.CodeUnenforceable},
		Doc: "Begins an upload of a blob: a body of up to 64 MiB, which mail.send and state.set name by its SHA-256. Its bytes count as write_bytes at once. The upload expires after an hour, and ends with the run."}

	BlobWrite = api.Row[api.BlobWriteParams, api.BlobWriteResult]{Name: "blob.write", Access: api.AccessSelf, Tier: api.Experimental, Errors: []api.Code{api.CodeNotFound, api.CodeConflict, api.CodeTooLarge},
		Doc: "Writes a part of an upload, of at most 36 KiB. The parts come in their order; one may be written again."}

	BlobClose = api.Row[api.BlobCloseParams, api.BlobResult]{Name: "blob.close", Access: api.AccessSelf, Tier: api.Experimental, Errors: []api.Code{api.CodeNotFound, api.CodeConflict},
		Doc: "Ends an upload, and returns the SHA-256 of the blob, which is durable then. The run may name it for an hour; bodies that do keep it."}

	BlobTake = api.Row[api.BlobTakeParams, api.BlobResult]{Name: "blob.take", Access: api.AccessSelf, Tier: api.Experimental, Errors: []api.Code{api.CodeNotFound, api.CodeConflict, api.CodeTooLarge, api.CodeBudget, api.CodeUnenforceable},
		Doc: "Makes a blob of a file of the agent's, as blob.open, blob.write and blob.close do. It is read with the agent's rights, at the path that the agent sees."}

	BlobRead = api.Row[api.BlobReadParams, api.BlobReadResult]{Name: "blob.read", Access: api.AccessSelf, Tier: api.Experimental, Errors: []api.Code{api.CodeNotFound},
		Doc: "Returns a part of a blob to which a message in the agent's mailbox, a key of its run or an upload of its own refers; or a key that the call names and that the agent may read. Any other blob is as one that there is not."}

	BlobSave = api.Row[api.BlobSaveParams, api.BlobResult]{Name: "blob.save", Access: api.AccessSelf, Tier: api.Experimental, Errors: []api.Code{api.CodeNotFound, api.CodeConflict, api.CodeUnenforceable},
		Doc: "Writes a blob that the agent may read to a new file, with the agent's rights, at the path that the agent sees."}

	ModelQueue = api.Row[api.RunParams, api.ModelQueueResult]{Name: "model.queue", Access: api.AccessAgent, Tier: api.Experimental, Errors: api.RunErrors,
		Doc: "Returns the run's calls of models that wait for their turn: the position of each, and how long it is expected to wait."}

	EventAppend = api.Row[api.EventAppendParams, api.EventAppendResult]{Name: "event.append", Access: api.AccessSelf, Tier: api.Experimental, Errors: []api.Code{api.CodeNotFound, api.CodeBudget},
		Doc: "Adds an event of the agent's own, which is durable when the call is answered, and may name the event, call or message that it follows from. The newest 256 of a run are kept; all are in the audit log, without their bodies. It costs one message."}

	EventTrace = api.Row[api.TraceParams, api.TraceResult]{Name: "event.trace", Access: api.AccessSelf, Tier: api.Experimental, Errors: []api.Code{api.CodeNotFound},
		Doc: "Returns from what an event, a call, a message or a run follows, step by step as far as the agent may see: its own calls, those of runs below it, and what sent it mail. With down what follows from it, as far as that is the agent's own or a run's below it. The newest 32 MiB of the audit log are searched."}

	AuditRead = api.Row[api.AuditReadParams, api.AuditReadResult]{Name: "audit.read", Access: api.AccessAgent, Tier: api.Experimental, Errors: api.RunErrors,
		Doc: "Returns records of the audit log about a namespace of the run's owner. An agent needs a grant of kind audit that covers it. If there is more, the answer has next, and the same request with that as after returns the following part, which may be empty."}
)

// table is made when it is asked for: a start of clove does not pay for it.
var table = sync.OnceValue(func() api.Table {
	return api.Table{
		AgentGet.Method(),
		AgentListen.Method(),
		AgentReady.Method(),
		AgentHandoff.Method(),
		AgentAccept.Method(),
		AgentWithdraw.Method(),
		AgentOffers.Method(),
		AgentSpawn.Method(),
		AgentWait.Method(),
		AgentSignal.Method(),
		AgentList.Method(),
		AgentTree.Method(),
		AgentResult.Method(),
		AgentCollect.Method(),
		AgentFetch.Method(),
		AgentApply.Method(),
		ToolList.Method(),
		ToolCall.Method(),
		GrantList.Method(),
		GrantDerive.Method(),
		GrantRevoke.Method(),
		GrantCheck.Method(),
		BudgetGet.Method(),
		BudgetReserve.Method(),
		BudgetSettle.Method(),
		BudgetRelease.Method(),
		BudgetCharge.Method(),
		MailSend.Method(),
		MailReceive.Method(),
		MailAck.Method(),
		MailReply.Method(),
		MailAnswer.Method(),
		MailSubscribe.Method(),
		MailUnsubscribe.Method(),
		MailPublish.Method(),
		JobAdd.Method(),
		JobClaim.Method(),
		JobRenew.Method(),
		JobComplete.Method(),
		JobFail.Method(),
		JobGet.Method(),
		JobList.Method(),
		QueueOpen.Method(),
		QueueClose.Method(),
		NameRegister.Method(),
		NameRelease.Method(),
		NameLookup.Method(),
		NameList.Method(),
		ApprovalOwn.Method(),
		ApprovalCancel.Method(),
		StateGet.Method(),
		StateSet.Method(),
		StateDelete.Method(),
		StateList.Method(),
		StateWatch.Method(),
		BlobOpen.Method(),
		BlobWrite.Method(),
		BlobClose.Method(),
		BlobTake.Method(),
		BlobRead.Method(),
		BlobSave.Method(),
		ModelQueue.Method(),
		EventAppend.Method(),
		EventTrace.Method(),
		AuditRead.Method(),
	}
})

// All returns the rows, in the order of the documents. It is the package's own list: callers change nothing in it.
func All() api.Table { return table() }

// Find returns the row of a method.
func Find(name string) (api.Method, bool) { return table().Find(name) }
