// Package probe builds the program of attacks in src and parses its output. It has the
// table of the results that each attack must have inside a sandbox.
//
// The program is written in C because an attack is a system call with exact registers,
// and because it must run as the only file of a root. It is its own control: a test
// runs it outside first, where no attack may fail with the result that is expected
// inside. README.md says how to use it by hand.
//
// Only tests import this package.
package probe
