package methods

import "clove.run/clove/api"

// The methods that hold a session.
var (
	RunAttach = api.Row[api.AttachParams, api.AttachResult]{Name: "run.attach", Shape: api.ShapeSession, Access: api.AccessOwner, Tier: api.Stable, Notes: api.NoteOutput, Errors: api.RunErrors, Audit: api.AuditAdmin,
		Doc: "Attaches to the streams of a live run: its output from now on, and its input if it keeps one open. Detaching changes nothing for the agent."}

	RunExec = api.Row[api.ExecParams, api.ExecResult]{Name: "run.exec", Shape: api.ShapeSession, Access: api.AccessOwner, Tier: api.Stable, Notes: api.NoteOutput, Errors: api.RunErrors, Audit: api.AuditExec,
		Doc: "Runs one more process in a live run's sandbox, with the same isolation and limits. It, and all that it started, is ended with the session, unless it is detached."}

	RunCopyIn = api.Row[api.CopyParams, api.Nothing]{Name: "run.copy_in", Shape: api.ShapeSession, Access: api.AccessOwner, Tier: api.Stable, Errors: api.RunErrors, Audit: api.AuditAdmin,
		Doc: "Unpacks the session's input, a tar archive, in a folder of a live run; the agent owns the files."}

	RunCopyOut = api.Row[api.CopyParams, api.Nothing]{Name: "run.copy_out", Shape: api.ShapeSession, Access: api.AccessOwner, Tier: api.Stable, Notes: api.NoteOutput, Errors: api.RunErrors, Audit: api.AuditAdmin,
		Doc: "Returns a file or folder of a run as a tar archive. After its end a run has only what it made or changed, so of a folder that the host has as well that is all."}
)
