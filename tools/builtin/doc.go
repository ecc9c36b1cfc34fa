// Package builtin does what tools do inside a sandbox: the built-in tools, and commands from
// templates. clove-tool calls it, and clove's own agent loop for its files.
//
//	files.go    read, write, edit, list
//	walk.go     glob and grep, over files below a folder
//	process.go  exec, git and commands: a process group that ends with its call
//	git.go      a repository is looked at through another git directory, which has no settings but known ones
//	fetch.go    http and https
//
// Everything is an ordinary system call or process with the rights of the caller: what a tool may
// do is what the sandbox lets it do, and nothing here is a protection of the host. What is
// protected is the caller. Files that are no regular ones are refused, because they could have no
// end. Results, what is held in memory, entries that are visited and times are bounded, and a
// result that is not whole says what is left out and how to get it.
//
// git runs no program that the repository names. The repository's settings are read by package
// gitdir, and of them git sees those that name no program. Submodules are not entered.
//
// fetch checks no address: the sandbox decides what is reached. HTML becomes text by the tokens of
// golang.org/x/net/html.
package builtin
