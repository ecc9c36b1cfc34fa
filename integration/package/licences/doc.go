// Command licences prints the licences of all that is linked into programs of
// clove's: licences PROGRAM...
//
// What is linked, each program says itself (go version -m). The texts are those of
// the Go module cache that it was built from, of Go's own folder and, for a program
// with C in it, of the Debian packages whose static libraries the linker took. A
// text is taken from the folder of each linked package and those above it, because a
// module may hold a part of another one; equal texts are printed once.
//
// It refuses to leave anything out: a module without a licence, or whose version is
// not the one in go.mod, is an error, and nothing is printed.
package main
