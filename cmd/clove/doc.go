// Command clove runs untrusted programs, each in a sandbox of its own.
//
// Arguments are first put in order (arrange.go), because urfave/cli stops at the first
// positional argument while clove's flags count on both sides of SCRIPT. For run and render
// the flags are then copied into a resolve.Request (run_request.go), and package
// policies/resolve makes the agent.Spec of it or says what is wrong.
//
// Each command is a row (command.go): its verbs with their usage lines, its flags and texts. Help,
// completion, the manual page, and what arguments a command takes follow from the row. A verb
// that calls a method of the API names the method's row (call.go): the usage line fills the parameters by
// the table of inputs (vocabulary.go), and the result is a table by the tags of its type, a line, or JSON.
// Package verbs reads lines and tags. One more verb is one row.
//
// Other verbs are functions, or methods of a type for all verbs of a command. They get what they use of the
// process: the screen (program.go), on which they print and report, the access (access.go) to host, store and
// cloved, or both.
//
// Rows about runs are in runs.go and control.go, as their methods are; any other command has a file that is
// named for it. They reach the sandbox through the interface backend (access.go), which only the
// commands that need it open, so that `clove version` touches no file.
//
// stdout is the agent's, or the command's answer. Everything that clove itself
// has to say goes to stderr: errors as "clove: …" with a "hint: …", with
// --json as one JSON object.
//
// It contains nothing that another front end would need too: package runtime decides
// what a limit means, package policies how a value is written and what its default is.
package main
