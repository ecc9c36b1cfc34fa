// Package interpreter finds the program that runs a script, and everything of it that must
// appear inside the sandbox.
//
// A Finder looks where the caller's shell would: in PATH, for version managers
// (pyenv and its family) in the version that the script's or the caller's directory
// selects, and for a Python virtual environment in the installation that it was made
// from. The answer is an Interpreter: its path, which is the same inside, and the
// directories outside the base system that it consists of. A Head is the beginning of a
// file and answers what the kernel would answer: the #! line, or the machine of a program.
//
// It executes nothing: the shims of version managers are shell scripts, and would run as
// root. It refuses to show a directory that contains more than an interpreter.
package interpreter
