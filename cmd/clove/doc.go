// Command clove runs untrusted programs, each in a sandbox of its own.
//
// Arguments are first put in order (arrange.go), because urfave/cli stops at the first
// positional argument while clove's flags count on both sides of SCRIPT. For run and render
// the flags are then copied into a build.Request (run_request.go), and package
// policies/build makes the agent.Spec of it or says what is wrong.
//
// Each subcommand has a file that is named for it. They reach the sandbox
// through the interfaces of backend.go, which is opened only by the commands
// that need it, so that `clove version` touches no file.
//
// stdout is the agent's, or the command's answer. Everything that clove itself
// has to say goes to stderr: errors as "clove: …" with a "hint: …", with
// --json as one JSON object.
//
// It contains nothing that another front end would need too: package runtime decides
// what a limit means, package policies how a value is written and what its default is.
package main
