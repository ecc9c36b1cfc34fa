// Package policies holds the built-in levels and, as policy documents come, parses, extends,
// merges and decides.
//
// Today there is one level, standard: the defaults of every run, as data in one place, so
// that the command line, inspect and doctor show the same ones. Package build lays a
// request over a level. A policy is a value; this package does not touch the operating
// system.
package policies
