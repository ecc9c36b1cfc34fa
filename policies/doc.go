// Package policies holds the built-in levels and, as policy documents come,
// parses, extends, merges and decides.
//
// Today there is one level, standard: the defaults of every run, as data in
// one place, so that the command line, inspect and doctor show the same ones.
// A policy here is a value; it refuses to touch the operating system.
package policies
