// Package imports makes a policy document from the settings of another system: docker's filter
// of system calls, @anthropic-ai/sandbox-runtime, Claude Code, or Codex. Bytes go in and text
// comes out; it opens no file and asks no host.
//
// # Steps
//
// Import recognises the system by keys that only its files have. Each system has tables with a
// row for every setting that exists there. A row turns a value into wishes: paths to write,
// read or hide, names to reach. When all rows are done, the wishes are compared with what a
// sandbox of clove shows, because the same words mean something else there: nothing of the
// host's home appears, the workspace is a copy on write, and /tmp is the run's own. The rest is
// written as YAML, with a comment for each setting that became something else.
//
// # What is refused
//
// Each setting is carried, narrowed with a comment, or refused. If one is refused, Import
// returns an error with the names of all of them, and no document: a policy that silently
// lacks a denial is worse than none. File.Skip leaves a setting out, and a comment says so. A
// setting that no table has is refused with the nearest one that exists.
//
// A document extends the level standard. For all that it allows beyond that, a reason
// in widen names the setting.
package imports
