// Package doctest reads the project's documents as a test sees them: which
// pieces of code they quote, and where. Its own tests hold them to the tree
// (paths, make targets, no path of the machine that they were written on); the
// command line's tests hold them, and the manual pages that are written by hand,
// to the table of commands and flags.
//
// It refuses to judge prose: what stands outside of code marks is free.
package doctest
