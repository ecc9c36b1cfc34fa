package methods

import "clove.run/clove/api"

// The methods of users about jobs and their queues.
var (
	JobsAdd = api.Row[api.JobsAddParams, api.JobResult]{Name: "jobs.add", Access: api.AccessMember, Tier: api.Experimental, Errors: []api.Code{api.CodeNotFound, api.CodeBusy},
		Doc: "Adds a job to a queue of the caller's, or for root of a user's."}

	JobsList = api.Row[api.JobsListParams, api.JobsListResult]{Name: "jobs.list", Access: api.AccessMember, Tier: api.Experimental,
		Doc: "Lists the jobs of the caller's queues, to root all, with those that are dead and the last ones that are done. If there are more, the answer has next, and the same request with that as after returns the following part."}

	JobsShow = api.Row[api.JobGetParams, api.JobResult]{Name: "jobs.show", Access: api.AccessMember, Tier: api.Experimental, Errors: []api.Code{api.CodeNotFound},
		Doc: "Returns a job of a queue of the caller's."}

	JobsRetry = api.Row[api.JobParams, api.JobResult]{Name: "jobs.retry", Access: api.AccessMember, Tier: api.Experimental, Errors: []api.Code{api.CodeNotFound, api.CodeBusy, api.CodeConflict},
		Doc: "Makes a dead job ready again, with all its attempts and without its deadline; one that is delayed is ready at once."}

	JobsCancel = api.Row[api.JobParams, api.JobResult]{Name: "jobs.cancel", Access: api.AccessMember, Tier: api.Experimental, Errors: []api.Code{api.CodeNotFound, api.CodeConflict},
		Doc: "Removes a job that is not done. A run that holds it holds it no more; one that clove has started for it is ended."}

	QueueAdd = api.Row[api.QueueAddParams, api.QueueResult]{Name: "queue.add", Access: api.AccessMember, Tier: api.Experimental, Errors: []api.Code{api.CodeNotFound, api.CodeBusy, api.CodeConflict},
		Doc: "Makes a queue of jobs of the caller's, or for root of a user's. A repetition replaces its settings. With a manifest clove starts a run for each job, which the owner of the queue pays for."}

	QueueList = api.Row[api.QueueListParams, api.QueueListResult]{Name: "queue.list", Access: api.AccessMember, Tier: api.Experimental,
		Doc: "Lists the queues of the caller's, to root all. If there are more, the answer has next, and the same request with that as after returns the following part."}

	QueueRemove = api.Row[api.QueueRemoveParams, api.Nothing]{Name: "queue.remove", Access: api.AccessMember, Tier: api.Experimental, Errors: []api.Code{api.CodeNotFound, api.CodeConflict},
		Doc: "Removes a queue in which no job waits, is held or is dead."}
)
