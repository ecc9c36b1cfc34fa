package methods

import "clove.run/clove/api"

// The methods about what a run changed in its files.
var (
	RunDiff = api.Row[api.DiffParams, api.DiffResult]{Name: "run.diff", Shape: api.ShapeStream, Access: api.AccessOwner, Tier: api.Stable, Notes: api.NoteChange, Errors: api.RunErrors,
		Doc: "Returns what the run changed in its files, as run.change notifications. lost/ID in place of a run names a layer without a record; run.apply takes it, too. A live run is frozen while it is read, for at most two minutes. Of the host's side of the workspace, the caller sees only what it may read."}

	RunApply = api.Row[api.ApplyParams, api.ApplyResult]{Name: "run.apply", Shape: api.ShapeStream, Access: api.AccessOwner, Tier: api.Stable, Notes: api.NoteChange, Errors: api.RunErrors, Audit: api.AuditAdmin,
		Doc: "Writes the workspace's changes back to the host's directory with the caller's own ids, and reports as run.change notifications what was written and what was refused, and why. A file that a program of the host would execute by itself, such as a git hook (executed_by in a change), that the next agent would follow, such as AGENTS.md (instructs), or that may be either (unknown) is refused unless the parameters allow it. A change of type ref is the branch of a workspace whose .git is a file: its commits are taken over, and the branch is moved, unless the host moved it. A live run is frozen meanwhile."}
)
