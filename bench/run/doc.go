// Package run runs the attempts of a bench: as many at once as processors and memory allow,
// each in a sandbox of its own, and grades each in another one.
//
// It has no sandbox code. A suite's limits and networks become a resolve.Request, as the flags
// of clove run do, and what executes the spec is the caller's (Sandboxes).
//
// # One attempt
//
//	reserve    processors, which no other attempt gets, and memory
//	copy       the task's files into a new folder: the sandbox shows it copy on write
//	agent      one run of clove's; its end ends every process of it
//	collect    the workspace's changes are applied to the copy; the layer is removed
//	keep       the copy is packed into files.tar
//	grade      another run of clove's: the grader's files at /workspace, the attempt's
//	           files at /attempt and its output at /output, both read-only
//	result     one line in results.jsonl, when all files of the attempt are on the disk
//
// An attempt that is interrupted has no line, and is made again by --resume from its
// beginning: its folder is removed first.
//
// # A root that is kept
//
// With suite.RootKept nothing is collected. Set-up and agent are two runs, and each begins with a
// copy of the layer that the one before left, an image (Sandboxes.KeepLayer). The grader begins
// with the set-up's and is shown the agent's root, or with a copy of the agent's
// (suite.Grade.Root). That copy is discarded, so the attempt's image stays as it was hashed.
//
// # What it refuses
//
// It begins no attempt while the program of any agent or grader is missing (Programs).
// It never starts an attempt for which the machine has no room, and never tries an agent
// again that has failed by itself.
package run
