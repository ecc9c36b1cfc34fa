package methods

import "clove.run/clove/api"

// The methods that act on a live run, or read it.
var (
	RunStop = api.Row[api.StopParams, api.Nothing]{Name: "run.stop", Access: api.AccessOwner, Tier: api.Stable, Errors: api.RunErrors, Audit: api.AuditAdmin,
		Doc: "Ends a run: TERM, the grace period, then KILL to every process. Answers when it has ended. Its restart policy and schedule are suspended until run.restart."}

	RunSignal = api.Row[api.SignalParams, api.Nothing]{Name: "run.signal", Access: api.AccessOwner, Tier: api.Stable, Errors: api.RunErrors, Audit: api.AuditAdmin,
		Doc: "Sends the agent a signal. KILL ends all of its processes. KILL and TERM suspend its restart policy. So does policy, which ends it with status policy-kill."}

	RunRestart = api.Row[api.RestartParams, api.RunResult]{Name: "run.restart", Access: api.AccessOwner, Tier: api.Stable, Errors: api.RunErrors, Audit: api.AuditAdmin,
		Doc: "Ends the run if it lives, and starts it again with the files that it wrote. A waiting run is started now, if there is room. Its policy and its schedule are active again."}

	RunPause = api.Row[api.RunParams, api.Nothing]{Name: "run.pause", Access: api.AccessOwner, Tier: api.Stable, Errors: api.RunErrors, Audit: api.AuditAdmin,
		Doc: "Freezes every process of a live run. Its wall clock continues."}

	RunResume = api.Row[api.RunParams, api.Nothing]{Name: "run.resume", Access: api.AccessOwner, Tier: api.Stable, Errors: api.RunErrors, Audit: api.AuditAdmin,
		Doc: "Resumes a paused run."}

	RunUpdate = api.Row[api.UpdateParams, api.RunResult]{Name: "run.update", Access: api.AccessOwner, Tier: api.Stable, Errors: []api.Code{api.CodeNotFound, api.CodeConflict, api.CodeUnenforceable}, Audit: api.AuditLimit,
		Doc: "Changes limits and network rules of a live run: everything that is named, or nothing."}

	RunStats = api.Row[api.RunParams, api.StatsResult]{Name: "run.stats", Access: api.AccessOwner, Tier: api.Stable, Errors: api.RunErrors,
		Doc: "Returns what a live run uses now and has used since its start. A figure that this host cannot supply is absent."}

	RunProcesses = api.Row[api.RunParams, api.ProcessesResult]{Name: "run.processes", Access: api.AccessOwner, Tier: api.Stable, Errors: api.RunErrors,
		Doc: "Lists the processes of a live run, with the ids that they have inside."}

	RunLogs = api.Row[api.LogsParams, api.Nothing]{Name: "run.logs", Shape: api.ShapeStream, Access: api.AccessOwner, Tier: api.Stable, Notes: api.NoteLogLine, Errors: api.RunErrors,
		Doc: "Returns the run's output, line by line, as run.log notifications; with follow until it has ended and is not restarted."}
)
