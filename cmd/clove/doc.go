// Command clove runs untrusted programs, each in a sandbox of its own.
//
// The command line becomes an agent.Spec here and nowhere else. Arguments are
// first put in order (arrange.go), because urfave/cli stops at the first
// positional argument while clove's flags count on both sides of SCRIPT; then
// buildSpec (spec.go) turns flags and words into a Spec with the steps of one
// table. It is a function of the flags and of a value that describes the host,
// it makes nothing, and it refuses every mistake with one sentence and a hint:
// what comes out is complete and valid. Finding an interpreter that lives
// outside the base system (interpreter*.go) is a part of it.
//
// Each subcommand has a file that is named for it. They reach the sandbox
// through the interfaces of backend.go, which is opened only by the commands
// that need it, so that `clove version` touches no file.
//
// stdout is the agent's, or the command's answer. Everything that clove itself
// has to say goes to stderr: errors as "clove: …" with a "hint: …", with
// --json as one JSON object.
//
// It refuses to hold anything that another front end would need too: what a
// limit means is runtime's, what a default is policies'.
package main
