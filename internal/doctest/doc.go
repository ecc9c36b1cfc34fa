// Package doctest reads the project's documents for tests: the pieces of code that
// they quote, and where. Its own tests compare them with the tree: paths, tests and
// make targets exist, and no path of a development machine is named. The command
// line's tests compare them, and the hand-written manual pages, with the table of
// commands and flags.
//
// It refuses to judge prose: text outside of code marks is not checked.
package doctest
