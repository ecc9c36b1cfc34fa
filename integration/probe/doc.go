// Package probe builds and reads the program of attacks in src, and holds the
// table of what each attack must meet inside a sandbox.
//
// The program is C because an attack is a system call with exact registers,
// and because it must run as the only file of a root. It is its own control:
// a test runs it outside first, where no attack may fail in the way in which
// it must fail inside. README.md says how to use it by hand.
//
// Only tests import this package.
package probe
