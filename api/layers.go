package api

import "clove.run/clove/agent"

// NoteChange is the notification of run.diff and run.apply.
const NoteChange = "run.change"

// DiffParams names a run, or lost/ID: a layer that the store has no record of.
type DiffParams struct {
	RunParams
	// To is the canonical path of a directory of the host that takes the place of the
	// workspace; only for lost/ID. Absent: the run's own.
	To string `json:"to,omitempty"`
	// Paths inside choose the changes of these files, and of all below them, as those of
	// run.apply do; they come with their contents, those of files up to 1 MiB. Absent: all
	// changes, without contents.
	Paths agent.RawStrings `json:"paths,omitempty"`
	// Contents asks for them without Paths, those of the workspace.
	Contents bool `json:"contents,omitempty"`
	// ListOnly leaves the digest out, for which all changed files of the workspace are read.
	ListOnly bool `json:"list_only,omitempty"`
}

// ApplyParams writes a run's workspace back to the host.
type ApplyParams struct {
	RunParams
	// To is as in run.diff.
	To string `json:"to,omitempty"`
	// Paths inside choose the changes of these files, and of all below them, with the new
	// folders that hold them. Absent: all. A path that nothing changed is an error.
	Paths agent.RawStrings `json:"paths,omitempty"`
	// Digest is the one that run.diff gave for what the caller looked at, all or the same paths: where
	// the workspace's changes are others by now, in their contents too, nothing is applied. Absent: apply
	// whatever there is.
	Digest string `json:"digest,omitempty"`
	// AllowExecutableConfig applies also files with an executed_by, because a program of the
	// host's executes them by itself once they are there, and files with an unknown, because
	// one may. AllowInstructions applies also files with an instructs. Otherwise these are refused,
	// but for the paths inside that AllowExecutable names, of any of the three.
	AllowExecutableConfig bool             `json:"allow_executable_config,omitempty"`
	AllowInstructions     bool             `json:"allow_instructions,omitempty"`
	AllowExecutable       agent.RawStrings `json:"allow_executable,omitempty"`
}

// ChangeNote is the notification of one change: found by run.diff, or made or
// refused by run.apply.
type ChangeNote struct {
	ID     any          `json:"id"`
	Change agent.Change `json:"change"`
}

// DiffResult sums up the notifications.
type DiffResult struct {
	Changes int `json:"changes"`
	// Digest stands for the changes of the workspace that were listed, the only ones that can
	// be applied, and for the bytes of their files. Empty with ListOnly.
	Digest string `json:"digest"`
}

// OwnApplyParams ask people to write an agent's changes back to its workspace on the host.
type OwnApplyParams struct {
	Paths agent.RawStrings `json:"paths,omitempty"` // as in run.apply
	Why   string           `json:"why,omitempty"`   // people see it; at most 1024 bytes
	Keyed
}

// OwnApplyResult counts what was written, and names what was not.
type OwnApplyResult struct {
	Applied int           `json:"applied"`
	Refused int           `json:"refused"`
	Left    []CollectLeft `json:"left"` // the first of those that were refused
}

// ApplyResult counts the notifications.
type ApplyResult struct {
	Applied int `json:"applied"`
	Refused int `json:"refused"`
}
