// Command licences prints the licences of everything that clove's programs are linked
// with. Its arguments are the programs.
//
// Each program contains the list of its modules (go version -m). The texts come from
// the Go module cache that it was built from, from Go's own folder and, for a program
// with C in it, from the Debian packages of the static libraries. A text is taken from
// the folder of each linked package and from those above it, because a module may
// contain a part of another one; equal texts are printed once.
//
// It refuses to leave anything out: a module without a licence, or whose version is
// not the one in go.mod, is an error, and nothing is printed.
package main
